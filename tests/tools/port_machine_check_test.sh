#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# What ports/openmpi-ugni/machine_check.py says of programs that end and repeat, and of those that do not. A script
# stands for `orrery run`: it says what was exact, and starts the program once.
# usage: port_machine_check_test.sh <root> <orrery>
set -euo pipefail
root=$1 orrery=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
osu=$folder/osu/collective
mkdir -p "$osu" "$folder/work"

script() { { echo '#!/bin/sh'; cat; } >"$1"; chmod +x "$1"; }
export ORRERY=$orrery
script "$folder/orrery" <<'E2'
[ "$1" = run ] || exec "$ORRERY" "$@"
while [ "$1" != --json ]; do
  case $1 in -n) ranks=$2 ;; --machine) echo "$2" >machine ;; esac
  shift
done
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
# A machine that is not known is refused by its name, before a program runs in another's time.
script "$osu/osu_ran" <<<"echo ran >$folder/ran"
for name in nosuch aries,nosuch nosuch,aries; do
  refused "machine_check.py: --machine $name: machine 'nosuch' is not known: expected aries, gemini," \
    --machine "$name" --only osu_ran --ranks 2
done
refused "layer 'nosuch' is not known: expected mpi" --machine aries+nosuch --only osu_ran --ranks 2
refused "machine '' is not known" --machine aries, --only osu_ran --ranks 2
refused "$folder/none/orrery cannot be run" --machine aries --only osu_ran --ranks 2 --orrery "$folder/none/orrery"
[ ! -e "$folder/ran" ] || fail "a program ran, and a machine was not accepted"
# A machine file's path is taken from where the check is started; its runs lie in the check's own folder.
mkdir "$folder/machines"
"$orrery" machines --print aries >"$folder/machines/own.toml"
said=$(cd "$folder" && check --machine machines/own.toml+mpi --only osu_barrier --ranks 2) || fail "$said"
[ -e "$folder/work/machine/own.toml+mpi-2/osu_barrier/output.1" ] || fail "$(find "$folder" -name output.1)"
grep -qxF -- "$folder/machines/own.toml+mpi" "$folder/work/machine/own.toml+mpi-2/osu_barrier/machine" ||
  fail "a program's run was not told the whole path of the machine"

# A port that is not built, or not to its end.
mkdir -p "$folder/inst/bin"
for arguments in "" "--machine aries"; do
  # shellcheck disable=SC2086 # several words
  ! said=$(PORT_PREFIX=$folder/inst "$root/ports/run.sh" openmpi-ugni check $arguments 2>&1) || fail "not refused"
  grep -qF "openmpi-ugni is not built in $folder/inst: expected 'ports/run.sh openmpi-ugni build' before" <<<"$said" ||
    fail "$said"
done

# run.sh, in a tree of its own: options that are not accepted are refused before the port's programs are compiled.
tree=$folder/tree
mkdir -p "$tree" "$folder/prefix/bin"
cp -r "$root/ports" "$tree"
touch "$folder/inst/.complete"
ln -s "$orrery" "$folder/prefix/bin/orrery"
script "$folder/inst/bin/mpicc" <<<"touch $folder/compiled; exit 1"
not_checked() {  # <what is said> <step> <port> <options...>
  local what=$1 step=$2 port=$3; shift 3
  local code=0
  said=$(ORRERY_PREFIX=$folder/prefix PORT_PREFIX=$folder/inst "$tree/ports/run.sh" "$port" "$step" "$@" 2>&1) || code=$?
  [ $code -eq 2 ] || fail "$port $step $*: code $code: $said"
  grep -qF -- "$what" <<<"$said" || fail "$port $step $*: $said"
  [ ! -e "$folder/compiled" ] || fail "$port $step $*: the port's programs were compiled first"
  [ "$(wc -l <<<"$said")" -le "${lines:-1}" ] || fail "$port $step $*: more than a line: $said"
}
for step in check all; do
  not_checked "--machine nosuch: machine 'nosuch' is not known: expected aries, gemini," $step openmpi-ugni --machine nosuch
  not_checked "'--machine': this port's check has no options" $step openmpi-portals4 --machine aries
  lines=20 not_checked "0 is not accepted" $step openmpi-ugni --machine aries --runs 0
done

# Where Orrery itself would be built first, too: the tree's machine files say which names there are.
cp -r "$root/machines" "$tree"
mkdir "$tree/tools"
script "$tree/tools/setup.sh" <<<"touch $folder/begun; exit 1"
not_begun() {  # <what is said> <port> <options...>
  local what=$1 port=$2; shift 2
  local code=0
  said=$("$tree/ports/run.sh" "$port" all "$@" 2>&1) || code=$?
  [ $code -eq 2 ] || fail "$port all $*: code $code: $said"
  grep -qF -- "$what" <<<"$said" || fail "$port all $*: $said"
  [ ! -e "$folder/begun" ] || fail "$port all $*: the build was begun first"
  [ ! -e "$tree/build" ] || fail "$port all $*: a build folder was made"
}
names=$(basename -a -s .toml "$tree"/machines/*.toml | sed -z 's/\n\(.\)/, \1/g')
not_begun "--machine nosuch: machine 'nosuch' is not known: expected $names or a path that ends in .toml" openmpi-ugni \
  --machine nosuch
not_begun "--machine aries,nosuch: machine 'nosuch' is not known: expected $names or" openmpi-ugni --machine aries,nosuch
not_begun "--machine : machine '' is not known" openmpi-ugni --machine ""
not_begun "aries.toml: layer 'nosuch' is not known: expected mpi" openmpi-ugni --machine aries+mpi+nosuch
not_begun "ideal.toml: layer 'mpi' is not known: the machine has none" openmpi-ugni --machine ideal+mpi
not_begun "$folder/none.toml: cannot be read" openmpi-ugni --machine "$folder/none.toml+mpi"
not_begun "0 is not accepted" openmpi-ugni --machine aries --runs 0
not_begun "'--machine': this port's check has no options" openmpi-portals4 --machine aries
# What is accepted goes on to the build.
for name in aries,gemini+mpi "$folder/machines/own.toml+mpi"; do
  rm -f "$folder/begun"
  ! said=$("$tree/ports/run.sh" openmpi-ugni all --machine "$name" 2>&1) || fail "$name: $said"
  [ -e "$folder/begun" ] || fail "$name: $said"
done
