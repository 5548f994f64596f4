#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# The curves of OSU's programs are those of the table beside them, and cross where their clients change over.
set -euo pipefail
root=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

said=$(python3 "$root/bench/osu/curves.py" --csv "$root/docs/figures/osu-aries.csv" --out "$folder")
grep -qF "put bandwidth: the block engine is better from 4096 bytes on" <<<"$said" || fail "$said"
for curve in put-bw latency; do
  cmp "$root/docs/figures/osu-aries-$curve.svg" "$folder/osu-aries-$curve.svg" || fail "osu-aries-$curve.svg is not of its table"
done
# Nowhere is a figure of the block engine 15 % off what was measured, nor one of the messages.
grep -E '^osu_' <<<"$said" | sed -E 's/.*\(([+-][0-9.]+) %\)/\1/' |
  awk '{ if ($1 > 15 || $1 < -15) bad = 1; n++ } END { exit bad || n < 20 }' || fail "$said"
! python3 "$root/bench/osu/curves.py" 2>/dev/null || fail "nothing to run or to draw, and no error"
