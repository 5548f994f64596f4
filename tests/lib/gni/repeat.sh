#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# Programs under virtual time print the same in every run: idle and beside two processes that compute without
# end, on one core and on two, under every launcher that is there. Compares the output of all runs of a
# program, whose lines may come in any order, with that of the first; `orrery run` counts conflicts besides
# (the oracle: every operation priced again in the order of time).
# usage: repeat.sh <orrery> <clock_worker>
#   REPEAT_RUNS (10) runs each; REPEAT_LAUNCHERS ("orrery hydra mpirun"); REPEAT_ONLY: a program's name
# Ends with 0 when all were the same. Half an hour with the values above.
set -euo pipefail
orrery=$1
worker=$2
runs=${REPEAT_RUNS:-10}
launchers=${REPEAT_LAUNCHERS:-orrery hydra mpirun}
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
  "2 ping_pong" "64 all_to_all 100" "16 hot_spot" "8 stealing" "9 to_one" "4 timeouts" "4 messages" "4 reduce"
)

# launched <launcher> <pes> <program...>
launched() {
  local launcher=$1 pes=$2
  shift 2
  case $launcher in
    orrery) "$orrery" run -n "$pes" --machine aries --json "$folder/report.json" "$worker" "$@" ;;
    hydra) ORRERY_MACHINE=aries mpiexec.hydra -n "$pes" "$worker" "$@" ;;
    mpirun) ORRERY_MACHINE=aries mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$pes" "$worker" "$@" ;;
    *) echo "repeat.sh: '$launcher' is not one of orrery, hydra, mpirun" >&2; exit 2 ;;
  esac
}

export -f launched
export orrery worker folder
there() { [ "$1" = orrery ] || command -v "$([ "$1" = hydra ] && echo mpiexec.hydra || echo mpirun)" >/dev/null; }

bad=0
for entry in "${programs[@]}"; do
  read -r pes name rest <<<"$entry"
  [ -z "${REPEAT_ONLY:-}" ] || [ "$REPEAT_ONLY" = "$name" ] || continue
  rm -f "$folder/first"
  same=0 all=0 failed=0 conflicts=0
  for launcher in $launchers; do
    there "$launcher" || { echo "$name: $launcher is not here"; continue; }
    for cores in 0 0,1; do
      for beside in nothing hogs; do
        [ $beside = nothing ] || start_hogs
        for ((i = 0; i < runs; ++i)); do
          all=$((all + 1))
          # shellcheck disable=SC2086
          if ! timeout 200 taskset -c $cores bash -c 'launched "$@"' launched $launcher $pes $name $rest \
            >"$folder/out" 2>"$folder/err"; then
            failed=$((failed + 1))
            tail -n 3 "$folder/err" >&2
            continue
          fi
          sort "$folder/out" >"$folder/sorted"
          [ -e "$folder/first" ] || cp "$folder/sorted" "$folder/first"
          if cmp -s "$folder/first" "$folder/sorted"; then
            same=$((same + 1))
          else
            echo "$name under $launcher on core(s) $cores beside $beside: differs" >&2
            diff "$folder/first" "$folder/sorted" | head -n 4 >&2
          fi
          if [ "$launcher" = orrery ] && ! grep -q '"conflicts": 0' "$folder/report.json"; then
            conflicts=$((conflicts + 1))
          fi
        done
        stop_hogs
      done
    done
  done
  [ $all -eq $same ] && [ $conflicts -eq 0 ] || bad=1
  printf '%-12s %3d PEs: %d of %d runs the same, %d failed, %d with conflicts\n' "$name" "$pes" $same $all $failed $conflicts
done
exit $bad
