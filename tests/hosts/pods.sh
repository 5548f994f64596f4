#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# pods.sh PROGRAM [ARGUMENT...]: inside two_hosts.sh, two PEs on the first host that share its network namespace and not
# the process numbers, as containers of one pod do: each is a host. Under `orrery run` ($TESTED_TOOL) they share memory
# nonetheless, and are told what keeps them apart.
set -u
. "$(dirname "$0")/../skip.sh"
command -v mpiexec.hydra > /dev/null || skip hydra "mpiexec.hydra (package mpich) is not installed"
unshare --pid --fork --mount-proc true 2> /dev/null || skip namespaces "no process namespaces may be made here"
mpiexec.hydra -n 2 unshare --pid --fork --mount-proc "$@" || exit 1
# With one ORRERY_JOB for both, too.
mpiexec.hydra -n 2 -env ORRERY_JOB one unshare --pid --fork --mount-proc "$@" || exit 1
said=$("$TESTED_TOOL" run -n 2 unshare --pid --fork --mount-proc "$@" 2>&1) && { echo "pods.sh: orrery run: expected that they fail"; exit 1; }
case $said in
  *"is in another pid namespace"*) ;;
  *) echo "pods.sh: expected a line about the pid namespace: $said"; exit 1 ;;
esac
