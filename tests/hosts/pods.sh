#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# pods.sh PROGRAM [ARGUMENT...]: inside two_hosts.sh, two PEs on the first host that share its network namespace and not
# the process numbers, as containers of one pod do. With an ORRERY_JOB of its own each is a host; without, they are
# told what keeps them apart.
set -u
command -v mpiexec.hydra > /dev/null || { echo "skipped: mpiexec.hydra (package mpich) is not installed"; exit 77; }
unshare --pid --fork --mount-proc true 2> /dev/null || { echo "skipped: no process namespaces may be made here"; exit 77; }
pair() {
  first=$1
  second=$2
  shift 2
  mpiexec.hydra -n 1 -env ORRERY_JOB "$first" unshare --pid --fork --mount-proc "$@" : \
    -n 1 -env ORRERY_JOB "$second" unshare --pid --fork --mount-proc "$@"
}
pair one two "$@" || exit 1
# What they say goes to a file: hydra loses the last lines of processes that abort.
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2016
pair one one sh -c '"$@" 2>> "$0"' "$log" "$@" && { echo "pods.sh: one ORRERY_JOB for both: expected that they fail"; exit 1; }
said=$(cat "$log")
case $said in
  *"is in another pid namespace"*) ;;
  *) echo "pods.sh: expected a line about the pid namespace: $said"; exit 1 ;;
esac
