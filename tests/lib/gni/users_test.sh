#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# usage: users_test.sh ORRERY WORKER: two users' PEs in one job. Neither hands out its memory to the other one; each
# says so in one line, however often it tries.
set -u
. "$(dirname "$0")/../../skip.sh"
orrery=$1
worker=$2
[ "$(id -u)" = 0 ] || skip root "only root has another user's PEs"
said=$(timeout 60 "$orrery" run -n 2 "$worker" 2>&1)
code=$?
[ $code -ne 77 ] || skip root "this root may not become another user"
lines=$(grep -c '^orrery: ' <<<"$said")
[ $code -eq 0 ] && [ "$lines" -eq 2 ] && [ "$(grep -c "not this user's" <<<"$said")" -eq 2 ] ||
  { echo "$code, $lines lines:"; head -n 20 <<<"$said"; exit 1; }
