#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# The SeaStar paper's figures, measured anew, say what the paper says, and are those of docs/figures to the byte.
set -euo pipefail
root=$1 orrery=$2 programs=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
figures() { python3 "$root/bench/osu/seastar.py" --orrery "$orrery" --programs "$programs" --out "$folder" "$@"; }

said=$(figures) || fail "$said"
for name in seastar.csv seastar-figure-2.svg seastar-figure-3.svg seastar-figure-4.svg; do
  cmp "$root/docs/figures/$name" "$folder/$name" || fail "$name of docs/figures is not what was measured"
done
# A figure that is not the paper's ends in 1.
sed 's/^\("latency, us","CCI, unreliable (UU)",4096,\).*/\19.99/' "$folder/seastar.csv" > "$folder/wrong.csv"
! cmp -s "$folder/seastar.csv" "$folder/wrong.csv" || fail "no row of CCI's latency to change"
! figures --csv "$folder/wrong.csv" > /dev/null || fail "9.99 us for 4 KiB of CCI was taken for the paper's"
