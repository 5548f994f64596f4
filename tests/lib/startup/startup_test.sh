#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# A client's first second under one launcher. usage: startup_test.sh LAUNCHER COMMAND CLIENT [DLOPEN_CLIENT]
# LAUNCHER: run (COMMAND run), hydra, mpirun, srun or none.
. "$(dirname "$0")/../../skip.sh"
launcher=$1 command=$2 client=$3 dlopen_client=$4
export ORRERY_JOB="startup-$$"  # tests that run at the same time do not meet
case $launcher in
  run) start="$command run --timeout 60 -n 3" size=3 ;;
  none) start="timeout 60" size=1 ;;
  hydra) start="timeout 60 mpiexec.hydra -n 3" size=3 needs=mpiexec.hydra ;;
  mpirun) start="timeout 60 mpirun --allow-run-as-root --oversubscribe -n 3" size=3 needs=mpirun ;;
  srun) start="timeout 60 srun --mpi=pmi2 --overcommit -n 3" size=3 needs=srun ;;
esac
# A launcher that failed once, beside other tests, works.
starts() {
  for _ in 1 2 3; do ! $start true < /dev/null > /dev/null 2>&1 || return 0; done
  return 1
}
if [ -n "$needs" ] && ! starts; then
  cause=$launcher
  [ $launcher != srun ] || cause=slurm
  skip $cause "$needs is not installed or does not start anything"
fi
failures=0
check() {  # name, expected code, words...
  local name=$1 expected=$2
  shift 2
  "$@" > /dev/null 2> "/tmp/startup-$$.err" < /dev/null
  local code=$?
  if [ $code -ne $expected ]; then
    echo "$launcher: $name: exit code $code, expected $expected"
    cat "/tmp/startup-$$.err"
    failures=$((failures + 1))
  fi
  rm -f "/tmp/startup-$$.err"
}
for way in plain early cut device finalized forked stdio; do
  check $way 0 $start "$client" $way $size
done
# Without the constructor's help PMI_Init still sets everything.
PMI_NO_PREINITIALIZE=1 check no_preinitialize 0 $start "$client" plain $size
if [ -n "$dlopen_client" ]; then check dlopen 0 $start "$dlopen_client" $size; fi
if [ $launcher = run ] || [ $launcher = none ]; then
  # Where the launcher's own wire is closed no other launcher can be reached.
  for way in closed reused; do check $way 0 $start "$client" $way $size; done
  check python 0 $start python3 -c "import subprocess, sys
sys.exit(subprocess.run(['$client', 'plain', '$size']).returncode)"
fi
if [ $launcher = run ]; then
  check "descriptors closed for the launcher" 0 bash -c "$start '$client' plain $size <&- >&- 2>&-"
  check "output closed for the client" 0 $start bash -c "exec '$client' plain $size 1<&-"
  # A launcher inside a PE: its processes are a job of their own.
  check "run inside" 0 $command run -n 1 $start "$client" early $size
  if mpirun --allow-run-as-root -n 1 true > /dev/null 2>&1; then
    check "mpirun inside" 0 $command run -n 1 mpirun --allow-run-as-root --oversubscribe -n 2 "$client" early 2
  fi
  if mpiexec.hydra -n 1 true > /dev/null 2>&1; then
    check "hydra inside" 0 $command run -n 1 mpiexec.hydra -n 2 "$client" early 2
  fi
  # The variables are there for a program that links nothing of ours.
  for name in PTAG COOKIE DEV_ID LOC_ADDR; do
    [ -n "$($command run -n 1 sh -c "echo \$PMI_GNI_$name")" ] || { echo "PMI_GNI_$name is not set"; failures=$((failures + 1)); }
  done
fi
exit $((failures != 0))
