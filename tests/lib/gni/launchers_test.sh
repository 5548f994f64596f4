#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# A program under virtual time prints the same under every launcher that is here, and asks the machine the
# same; none of its runs is anything but exact: what a launcher takes for its barrier, and where it blocks, is
# of no account.
# usage: launchers_test.sh <orrery> <clock_worker>
set -euo pipefail
here=$(dirname "$0")
launchers=orrery
if command -v mpiexec.hydra >/dev/null; then launchers+=" hydra"; fi
if command -v mpirun >/dev/null; then launchers+=" mpirun"; fi
# An address sanitizer's allocator must not look at the program's clock (docs/timing.md).
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}allocator_release_to_os_interval_ms=-1"
REPEAT_RUNS=1 REPEAT_CORES=0 REPEAT_BESIDE=nothing REPEAT_ONLY=messages REPEAT_LAUNCHERS=$launchers \
  "$here/repeat.sh" "$@"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORRERY_JOB="launchers-$$" ORRERY_MACHINE=aries
for launcher in $launchers; do
  mkdir "$folder/$launcher"
  export ORRERY_RECORD="$folder/$launcher/pe"
  case $launcher in
    orrery) "$1" run -n 3 "$2" stealing ;;
    hydra) timeout 60 mpiexec.hydra -n 3 "$2" stealing ;;
    mpirun) timeout 60 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 3 "$2" stealing ;;
  esac >/dev/null
  [ "$(grep -vhc '^#' "$folder/$launcher"/pe.0)" -gt 10 ] || { echo "$launcher: nothing was recorded" >&2; exit 1; }
  diff -r "$folder/orrery" "$folder/$launcher" >&2 || { echo "$launcher: other operations or answers" >&2; exit 1; }
done
echo "records of $launchers are the same"

# The same, with the other launchers started by `orrery run --via`, which sets all that the PEs need.
unset ORRERY_RECORD ORRERY_MACHINE ORRERY_JOB
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# AddressSanitizer, in the program too, minds that liborrery.so is in LD_PRELOAD before it.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
"$1" run -n 3 --machine aries --record "$folder/orrery.trace" "$2" stealing | sort >"$folder/orrery.out"
for launcher in mpiexec.hydra mpirun; do
  command -v $launcher >/dev/null || continue
  timeout 60 "$1" run --via $launcher -n 3 --machine aries --record "$folder/via.trace" "$2" stealing |
    sort >"$folder/via.out"
  diff "$folder/orrery.out" "$folder/via.out" >&2 || { echo "--via $launcher: another output" >&2; exit 1; }
  diff "$folder/orrery.trace" "$folder/via.trace" >&2 || { echo "--via $launcher: other operations" >&2; exit 1; }
  echo "--via $launcher: as orrery run"
done
