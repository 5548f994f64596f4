#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# The first second and the last of a client of one interface, under each launcher that is there.
# usage: api_test.sh ORRERY CLIENT LIBRARY INIT UNLOADER PMI
#   INIT: the library's function that starts it without arguments, or -
#   UNLOADER: closes LIBRARY and libpmi (PMI) while threads are inside
orrery=$1 client=$2 library=$3 init=$4 unloader=$5 pmi=$6
export ORRERY_JOB="api-$$"  # tests that run at the same time do not meet
failures=0
said=$(mktemp)
trap 'rm -f "$said"' EXIT
check() {  # name, expected code, words...
  local name=$1 expected=$2
  shift 2
  "$@" > /dev/null 2> "$said" < /dev/null
  local code=$?
  if [ $code -ne $expected ]; then
    echo "$name: exit code $code, expected $expected"
    cat "$said"
    failures=$((failures + 1))
  fi
}
run="$orrery run --timeout 60 -n 2"
for way in finish constructor forked stdio return exit_of_a_thread last_thread quick_exit waiting waiting_exit waiting__exit \
  waiting_quick_exit waiting_signal waiting_thread_exit; do
  # OpenSHMEM ends a job one of whose PEs ends while another one waits for a word of its memory.
  case $way in
    waiting*) check "run: $way" 0 $orrery run --timeout 60 -n 1 "$client" $way 1 ;;
    *) check "run: $way" 0 $run "$client" $way 2 ;;
  esac
  check "no launcher: $way" 0 timeout 60 "$client" $way 1
done
# PEs that end right behind the start are no longer needed by others' start.
for turn in 1 2 3 4 5; do
  check "run: at once" 3 $orrery run --timeout 60 -n 4 "$client" at_once 4
  if grep -q "pe [0-9]*: error" "$said"; then
    echo "run: at once: not only the launcher's line:"
    cat "$said"
    failures=$((failures + 1))
  fi
done
check "run: term" 143 $run "$client" term 2
check "run: descriptors closed for the launcher" 0 bash -c "$run '$client' finish 2 <&- >&- 2>&-"
check "run: standard descriptors closed" 0 $run bash -c "exec '$client' finish 2 <&- >&- 2>&-"
check "run: by Python" 0 $run python3 -c "import subprocess, sys
sys.exit(subprocess.run(['$client', 'finish', '2']).returncode)"
check "run: two programs" 0 $run bash -c "'$client' finish 2 && '$client' return 2"
# A plug-in: opened with names of its own, started, and closed while its service thread runs.
check "run: dlopen" 0 $run python3 -c "import ctypes, os, sys, time, _ctypes
library = ctypes.CDLL('$library', mode=os.RTLD_NOW)
if '$init' != '-': getattr(library, '$init')()
_ctypes.dlclose(library._handle)
time.sleep(0.2)"
# OpenSHMEM ends a job one of whose PEs ends while another one waits.
check "run: closed with threads inside" 0 $orrery run --timeout 60 -n 1 "$unloader" "$library" "$pmi"
check "no launcher: closed with threads inside" 0 timeout 60 "$unloader" "$library" "$pmi"
# These two count a process that leaves without a word as failed, where they notice before the others have left.
if mpiexec.hydra -n 1 true > /dev/null 2>&1; then
  for way in finish constructor forked; do
    check "hydra: $way" 0 timeout 60 mpiexec.hydra -n 2 "$client" $way 2
  done
fi
mpirun="timeout 60 mpirun --allow-run-as-root --oversubscribe"
if $mpirun -n 1 true > /dev/null 2>&1; then
  for way in finish constructor; do check "mpirun: $way" 0 $mpirun -n 2 "$client" $way 2; done
fi
exit $((failures != 0))
