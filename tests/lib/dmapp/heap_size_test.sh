#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# A size of the symmetric heap that is none is refused in one line of the whole job: the variable, its value, what is
# accepted. So is one that is not the same in all PEs.
# usage: heap_size_test.sh <orrery> <client> <its own line at the end, or -> <variable>...
set -euo pipefail
orrery=$1 client=$2 own_line=$3; shift 3
export ORRERY_JOB=heap-size-$$
fail() { echo "FAILED: $*" >&2; exit 1; }

# The launcher says that it ends the job, and each PE of a client with a line of its own that it does not go on.
refused() {  # <regular expression> <command...>
  local what=$1 code=0; shift
  said=$("$orrery" run -n 3 -- "$@" none 2>&1) || code=$?
  [ $code -ne 0 ] || fail "$*: not refused: $said"
  grep -vE "(^orrery: PE [0-2] |$own_line\$)" <<<"$said" >"$lines" || fail "$*: no reason in: $said"
  [ "$(wc -l <"$lines")" = 1 ] || fail "$*: more than a line: $said"
  grep -qE -- "$what" "$lines" || fail "$*: not '$what': $said"
}
several=$#
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
sizes=(many -5 99999999999999999999 1000000P 1T 1048575M 1e9 0x10 "" " 5M" inf nan)
for variable in "$@"; do
  [ "$variable" = "$1" ] || sizes=(-5 2T)
  for size in "${sizes[@]}"; do
    refused "error: $variable=$size is not accepted: expected a number of bytes up to 10995[0-9]+ .just below 1T., with K" \
      env "$variable=$size" "$client"
  done
  # shellcheck disable=SC2016 # of the PE
  refused "pe 1: error: $variable=x is not accepted" sh -c '[ "$PMI_RANK" = 0 ] || export '"$variable"'=x; exec "$@"' sh "$client"
  # shellcheck disable=SC2016 # of the PE
  refused "pe 2: error: $variable makes a heap of 10485760 bytes here and of [0-9]+ in PE 0: expected the same in all" \
    sh -c 'size=5M; [ "$PMI_RANK" != 2 ] || size=9M; export '"$variable"'=$size; exec "$@"' sh "$client"
  "$orrery" run -n 3 -- env "$variable=5.5m" "$client" none || fail "$variable=5.5m was refused"
done
# OpenSHMEM ignores what stands behind the multiplier, and says that once.
if [ "$several" -gt 1 ]; then
  said=$("$orrery" run -n 3 -- env "$1=5MB" "$client" none 2>&1) || fail "$1=5MB: $said"
  [ "$said" = "orrery: warn: $1=5MB: taken as 5M; only one multiplier counts" ] || fail "$1=5MB: $said"
fi
