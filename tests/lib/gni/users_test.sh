#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# usage: users_test.sh ORRERY WORKER: two users' PEs in one job. Neither hands out its memory to the other one; each
# says so in one line, however often it tries.
set -u
orrery=$1
worker=$2
[ "$(id -u)" = 0 ] || { echo "skipped: only root has another user's PEs"; exit 77; }
said=$(timeout 60 "$orrery" run -n 2 "$worker" 2>&1)
code=$?
[ $code -ne 77 ] || exit 77
lines=$(grep -c '^orrery: ' <<<"$said")
[ $code -eq 0 ] && [ "$lines" -eq 2 ] && [ "$(grep -c "not this user's" <<<"$said")" -eq 2 ] ||
  { echo "$code, $lines lines:"; head -n 20 <<<"$said"; exit 1; }
