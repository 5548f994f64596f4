#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# Programs under virtual time print the same in every run: idle and beside two processes that compute without
# end, on one core and on two, under every launcher that is there. Compares the output of all runs of a
# program, whose lines may come in any order, with that of the first, and looks that no PE was outside the
# clock and nothing was late in any run; `orrery run` counts conflicts besides (the oracle: every operation
# priced again in the order of time). Intervals of links that the model unites are the same in every run.
# usage: repeat.sh <orrery> <clock_worker>
#   REPEAT_RUNS (10) runs each; REPEAT_LAUNCHERS ("orrery hydra mpirun"); REPEAT_ONLY: a program's name;
#   REPEAT_CORES ("0 0,1"); REPEAT_BESIDE ("nothing hogs"); REPEAT_ALL_TO_ALL (64): PEs of that one
# Ends with 0 when all were the same, and every launcher that was named was there. Half an hour with the
# values above.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: repeat.sh <orrery> <clock_worker>" >&2; exit 2; }
orrery=$1
worker=$2
runs=${REPEAT_RUNS:-10}
launchers=${REPEAT_LAUNCHERS:-orrery hydra mpirun}
[[ "$runs" =~ ^[1-9][0-9]*$ ]] || { echo "repeat.sh: REPEAT_RUNS $runs: expected a number from 1 on" >&2; exit 2; }
folder=$(mktemp -d)
hogs=()
stop_hogs() { for pid in "${hogs[@]}"; do kill "$pid" 2>/dev/null || true; done; hogs=(); }
trap 'stop_hogs; rm -rf "$folder"' EXIT

start_hogs() {
  for _ in 1 2; do
    # It ends by itself, should this script be killed.
    timeout 600 bash -c 'while :; do :; done' &
    hogs+=($!)
  done
}

# PEs, program, its argument
programs=(
  "2 ping_pong" "${REPEAT_ALL_TO_ALL:-64} all_to_all 100" "16 hot_spot" "8 stealing" "9 to_one" "4 timeouts"
  "4 messages" "4 reduce"
)

# launched <launcher> <pes> <program...>
launched() {
  local launcher=$1 pes=$2
  shift 2
  case $launcher in
    orrery) "$orrery" run -n "$pes" --machine aries --json "$folder/report.json" "$worker" "$@" ;;
    hydra) ORRERY_JOB="repeat-$$" ORRERY_MACHINE=aries mpiexec.hydra -n "$pes" "$worker" "$@" ;;
    mpirun) ORRERY_JOB="repeat-$$" ORRERY_MACHINE=aries mpirun --allow-run-as-root --oversubscribe --bind-to none \
      -n "$pes" "$worker" "$@" ;;
  esac
}

export -f launched
export orrery worker folder
there() {
  case $1 in
    orrery) ;;
    hydra) command -v mpiexec.hydra >/dev/null ;;
    mpirun) command -v mpirun >/dev/null ;;
    *) echo "repeat.sh: '$1' is not one of orrery, hydra, mpirun" >&2; exit 2 ;;
  esac
}

united='0 times a PE was outside the clock, [0-9]* intervals of links were united, 0 events'

bad=0
for launcher in $launchers; do
  there "$launcher" || { echo "$launcher is not here" >&2; bad=1; launchers=${launchers//$launcher/}; }
done
seen=0
for entry in "${programs[@]}"; do
  read -r pes name rest <<<"$entry"
  [ -z "${REPEAT_ONLY:-}" ] || [ "$REPEAT_ONLY" = "$name" ] || continue
  rm -f "$folder/first"
  for launcher in $launchers; do
    for cores in ${REPEAT_CORES:-0 0,1}; do
      for beside in ${REPEAT_BESIDE:-nothing hogs}; do
        same=0 failed=0 inexact=0
        [ "$beside" = nothing ] || start_hogs
        for ((i = 0; i < runs; ++i)); do
          seen=$((seen + 1))
          # Its own: a job that was given up may still say so when the next one has begun.
          out=$folder/out.$i
          # shellcheck disable=SC2086
          if ! timeout 200 taskset -c $cores bash -c 'launched "$@"' launched $launcher $pes $name $rest \
            >"$out" 2>"$folder/err"; then
            failed=$((failed + 1))
            tail -n 3 "$folder/err" >&2
            continue
          fi
          sort "$out" >"$folder/sorted"
          [ -e "$folder/first" ] || cp "$folder/sorted" "$folder/first"
          if [ -s "$folder/sorted" ] && cmp -s "$folder/first" "$folder/sorted"; then
            same=$((same + 1))
          else
            diff "$folder/first" "$folder/sorted" | head -n 4 >&2 || true
          fi
          if grep 'not exact' "$folder/err" | grep -v "$united" >&2 ||
            { [ "$launcher" = orrery ] && ! grep -q '"conflicts": 0' "$folder/report.json"; }; then
            inexact=$((inexact + 1))
          fi
        done
        stop_hogs
        [ $same -eq "$runs" ] && [ $inexact -eq 0 ] || bad=1
        printf '%-11s %3d PEs, %-6s core(s) %-3s beside %-7s: %d of %d runs the same, %d failed, %d not exact\n' \
          "$name" "$pes" "$launcher" "$cores" "$beside" $same "$runs" $failed $inexact
      done
    done
  done
done
[ $seen -gt 0 ] || { echo "nothing was run" >&2; bad=1; }
echo "$seen runs: $([ $bad -eq 0 ] && echo all the same || echo NOT all the same)"
exit $bad
