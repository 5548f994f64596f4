#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# usage: start.sh LAUNCHER ORRERY WORKER: the ways in which a client comes to its first second, under one launcher
# (orrery, hydra, mpirun, none): by shells, with descriptors closed, as one program after the other, as a child of a
# parent that closes what it inherited.
set -u
. "$(dirname "$0")/../../skip.sh"
launcher=$1
orrery=$2
worker=$3
pes=2
case $launcher in
  orrery) run=("$orrery" run -n 2) ;;
  hydra)
    command -v mpiexec.hydra >/dev/null || skip hydra "mpiexec.hydra (package mpich) is not installed"
    run=(mpiexec.hydra -n 2)
    ;;
  mpirun)
    command -v mpirun.openmpi >/dev/null || skip mpirun "mpirun (package openmpi-bin) is not installed"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    run=(mpirun.openmpi --oversubscribe -n 2)
    ;;
  none)
    run=()
    pes=1
    ;;
  *) echo "start.sh: launcher $launcher: expected orrery, hydra, mpirun or none" >&2; exit 2 ;;
esac
failed=0
# try <what> <shell words>: $W is the worker.
try() {
  local said code
  said=$(W="$worker $pes" timeout 60 "${run[@]}" bash -c "$2" 2>&1 </dev/null)
  code=$?
  [ $code -eq 0 ] || { echo "$1: $code: $said"; failed=1; }
}
try "as it is" 'exec $W'
try "below a shell" '$W; exit $?'
try "below two shells" 'bash -c "$W; exit \$?"; exit $?'
try "without standard input" 'exec $W <&-'
try "without standard input and output" 'exec $W <&- >&-'
try "without standard output and error" 'exec $W >&- 2>&-'
# What the launcher hands down by descriptors and what it does not want to hear twice.
if [ "$launcher" != hydra ]; then
  try "three programs one after the other" '$W && $W && $W'
  if [ "$launcher" != mpirun ]; then
    # Open MPI takes a program that leaves so for one that failed.
    try "the first leaves without a word" '$W unfinalised && $W'
  fi
fi
case $launcher in
  orrery | none)
    close='for f in /proc/self/fd/*; do f=${f##*/}; [ "$f" -lt 3 ] || eval "exec $f>&-"; done 2>/dev/null'
    try "a child whose parent closed what it inherited" "bash -c '$close; exec \$W'; exit \$?"
    try "two such children" "bash -c '$close; exec \$W' && bash -c '$close; exec \$W'"
    try "two such children, the first without a word" "bash -c '$close; exec \$W unfinalised' && bash -c '$close; exec \$W'"
    ;;
esac
exit $failed
