#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# What ports/openmpi-ugni/machine_check.py says of programs that end and repeat, and of those that do not. A script
# stands for `orrery run`: it says what was exact, and starts the program once.
# usage: port_machine_check_test.sh <root>
set -euo pipefail
root=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
osu=$folder/osu/collective
mkdir -p "$osu" "$folder/work"

script() { { echo '#!/bin/sh'; cat; } >"$1"; chmod +x "$1"; }
script "$folder/orrery" <<'E2'
while [ "$1" != --json ]; do [ "$1" = -n ] && ranks=$2; shift; done
exact=true; case $3 in */osu_scatter) exact=false ;; esac
echo "{\"exact\": $exact}" > "$2"
shift 2
RANKS=$ranks exec "$@"
E2
script "$osu/osu_barrier" <<<'echo "$RANKS ranks: $*"; echo rank $$ | tr -d 0-9'
script "$osu/osu_latency" <<<'echo for two'
script "$osu/osu_bcast" <<<'echo $$'
script "$osu/osu_reduce" <<<'echo first >&2; echo "the reason" >&2; exit 3'
script "$osu/osu_scatter" <<<'echo a scatter'
script "$osu/osu_gather" <<<'exec sleep 600'
# The lines of two ranks may come in any order.
script "$osu/osu_hello" <<<'if [ -e seen ]; then echo a; echo b; else echo b; echo a; fi; touch seen'
script "$osu/not_of_osu" <<<'exit 9'

checks=(python3 "$root/ports/openmpi-ugni/machine_check.py" --orrery "$folder/orrery" --work "$folder/work" --osu "$folder/osu")
check() { "${checks[@]}" "$@"; }
says() { grep -qE -- "$1" <<<"$said" || fail "no '$1' in: $said"; }

said=$(check --machine aries,gemini --ranks 2,4 --only osu_barrier,osu_latency,osu_hello --busy 1) || fail "$said"
says '^ok +aries +2 osu_latency +ended 2/2, equal, exact 2/2'
! grep -qE 'aries +4 osu_latency' <<<"$said" || fail "osu_latency with four ranks: $said"
says '^ok +gemini +4 osu_barrier'
says '^aries +2 +3 +3 +3 +3 +3$'
says '^gemini +4 +2 +2 +2 +2 +2$'
says '^10 passed, 0 failed$'
grep -q '^4 ranks: -i 10 -x 2$' "$folder/work/machine/aries-4/osu_barrier/output.1" || fail "what a program printed is not kept"

! said=$(check --machine aries --runs 3 --only osu_bcast,osu_reduce,osu_scatter,osu_barrier --ranks 4) || fail "all well: $said"
says '^ok +aries +4 osu_barrier +ended 3/3, equal, exact 3/3'
says '^FAILED +aries +4 osu_bcast +ended 3/3, DIFFERS, exact 3/3'
says '^FAILED +aries +4 osu_reduce +ended 0/3 \(code 3\)'
says "^ +$folder/work/machine/aries-4/osu_reduce: the reason\$"
says '^FAILED +aries +4 osu_scatter +ended 3/3, equal, exact 0/3'
says '^aries +4 +4 +3 +3 +2 +1$'
says '^1 passed, 3 failed$'

! said=$(check --machine aries --runs 1 --only osu_gather --ranks 2 --time-out 1) || fail "all well: $said"
says '^FAILED +aries +2 osu_gather +ended 0/1 \(stopped\)'

# hpcc verifies itself.
if [ -e /usr/share/doc/hpcc/examples/_hpccinf.txt ]; then
  script "$folder/hpcc" <<<'echo "Success=0" >hpccoutf.txt'
  ! said=$(check --machine aries --only hpcc --hpcc "$folder/hpcc" --ranks 2) || fail "all well: $said"
  says '^FAILED +aries +2 hpcc +ended 2/2, not verified, equal, exact 2/2'
fi

# Stopped itself, it leaves nothing running.
script "$osu/osu_gather" <<<'echo $$ > pid.new && mv pid.new pid; exec sleep 600'
place=$folder/work/machine/aries-2/osu_gather
"${checks[@]}" --machine aries --runs 1 --only osu_gather --ranks 2 >/dev/null 2>&1 & checking=$!
until [ -e "$place/pid" ]; do sleep 0.05; done
kill $checking
wait $checking && fail "stopped, and ended with 0"
! kill -0 "$(cat "$place/pid")" 2>/dev/null || fail "a program is left running"

refused() {  # <what> <arguments...>
  local what=$1; shift
  ! said=$(check "$@" 2>&1) || fail "$*: not refused"
  grep -qF -- "$what" <<<"$said" || fail "$*: $said"
}
refused "osu_nonsense: there is no such program" --machine aries --only osu_nonsense
refused "1 is not accepted" --machine aries --ranks 1
refused "0 is not accepted" --machine aries --runs 0
refused "/nonsense is not a folder" --machine aries --osu "$folder/nonsense"
refused "hello_c is not there" --machine aries

# A port that is not built, or not to its end.
mkdir -p "$folder/inst/bin"
for arguments in "" "--machine aries"; do
  # shellcheck disable=SC2086 # several words
  ! said=$(PORT_PREFIX=$folder/inst "$root/ports/run.sh" openmpi-ugni check $arguments 2>&1) || fail "not refused"
  grep -qF "openmpi-ugni is not built in $folder/inst: expected 'ports/run.sh openmpi-ugni build' before" <<<"$said" ||
    fail "$said"
done
