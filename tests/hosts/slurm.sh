#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# slurm.sh PLUGIN PES PROGRAM [ARGUMENT...] [-- PES PROGRAM [ARGUMENT...]]...: starts a Slurm of its own, runs the
# programs under `srun --mpi=PLUGIN` (pmi2 or pmix) one after the other, and stops it. Inside two_hosts.sh half of
# the PEs run on each host; else all on this one. Exit code: the first failure's; 77 (skipped) without Slurm,
# without root, or without ORRERY_LONG_TESTS=1 (or ORRERY_CI_LONG=1, as .ci/run knows it).
set -u
[ $# -ge 3 ] || { echo "usage: slurm.sh pmi2|pmix PES PROGRAM [ARGUMENT...] [-- PES PROGRAM ...]" >&2; exit 2; }
plugin=$1
shift
case $plugin in
  pmi2 | pmix) ;;
  *) echo "slurm.sh: plugin $plugin: expected pmi2 or pmix" >&2; exit 2 ;;
esac
. "$(dirname "$0")/../skip.sh"
[ "${ORRERY_LONG_TESTS:-0}" = 1 ] || [ "${ORRERY_CI_LONG:-0}" = 1 ] || skip slurm "Slurm is started with ORRERY_LONG_TESTS=1 only"
unset ORRERY_LONG_TESTS ORRERY_CI_LONG
for command in slurmctld slurmd srun munged; do
  command -v $command > /dev/null || skip slurm "$command (package slurm-wlm) is not installed"
done
[ "$(id -u)" = 0 ] || skip root "slurmd needs root"

at=$(mktemp -d)
mkdir "$at/state" "$at/own"
daemons=
stop_all() {
  for pid in $daemons; do kill "$pid" 2> /dev/null; done
  [ ! -e "$at/munged.pid" ] || kill "$(cat "$at/munged.pid")" 2> /dev/null
  for pid in $daemons; do wait "$pid"; done
  umount "$at/own" 2> /dev/null
  rm -rf "$at"
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Every host is known by the name that it has itself; names and addresses stand in a file of this Slurm's own.
here=$(hostname)
if [ "${TWO_HOSTS:-0}" = 1 ]; then
  hosts=2
  # The command is one line for a shell, as with ssh.
  there=$("$HOST_EXEC" "$HOST_B" hostname)
  nodes="NodeName=$here NodeAddr=$HOST_A CPUs=2 State=UNKNOWN
NodeName=$there NodeAddr=$HOST_B CPUs=2 State=UNKNOWN"
  address=$HOST_A
  printf '127.0.0.1 localhost\n%s %s\n%s %s\n' "$HOST_A" "$here" "$HOST_B" "$there" > "$at/hosts"
  # Each host has its own mount namespace: there these are its own files.
  own="mount --bind $at/hosts /etc/hosts && mount -t tmpfs tmpfs $at/own"
  eval "$own"
else
  hosts=1
  nodes="NodeName=$here NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN"
  address=127.0.0.1
fi
port=$((20000 + $$ % 10000 * 2))
cat > "$at/slurm.conf" << END
ClusterName=orrery
SlurmctldHost=$here($address)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$at/munge
StateSaveLocation=$at/state
SlurmdSpoolDir=$at/spool.%n
SlurmdLogFile=$at/steps.%n.log
SlurmctldPidFile=$at/slurmctld.pid
SlurmdPidFile=$at/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
$nodes
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE
END
# Control groups are not used; in a network namespace they are not to be found where they usually are.
printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=%s/state\n' "$at" > "$at/cgroup.conf"
echo "PMIxCliTmpDirBase=$at/own" > "$at/mpi.conf"
SLURM_CONF=$at/slurm.conf
export SLURM_CONF

dd if=/dev/urandom of="$at/key" bs=64 count=1 2> /dev/null
chmod 400 "$at/key"
munged --force --key-file="$at/key" --socket="$at/munge" --pid-file="$at/munged.pid" --log-file="$at/munged.log" \
  --seed-file="$at/munged.seed" 2> /dev/null || { cat "$at/munged.log"; exit 1; }
slurmctld -D > "$at/slurmctld.log" 2>&1 &
daemons=$!
slurmd -D > "$at/slurmd.log" 2>&1 &
daemons="$daemons $!"
if [ $hosts = 2 ]; then
  "$HOST_EXEC" "$HOST_B" "$own; SLURM_CONF=$SLURM_CONF exec slurmd -D" \
    > "$at/slurmd.there.log" 2>&1 &
  daemons="$daemons $!"
fi
looks=0
until [ "$(sinfo --noheader --Node --format=%T 2> /dev/null | grep -c '^idle$')" = $hosts ]; do
  looks=$((looks + 1))
  if [ $looks -gt 300 ]; then
    echo "slurm.sh: $hosts nodes have not become idle:"
    sinfo --Node --long
    tail -n 20 "$at"/*.log
    exit 1
  fi
  sleep 0.1
done

code=0
# run PES PROGRAM [ARGUMENT...]
run() {
  local pes=$1
  shift
  echo "== srun --mpi=$plugin, $pes PEs, $hosts host(s): ${1##*/}"
  srun --mpi="$plugin" --nodes=$hosts --ntasks="$pes" --ntasks-per-node=$((pes / hosts)) --overcommit --kill-on-bad-exit "$@"
  local its=$?
  [ $code != 0 ] || code=$its
}
words=()
for word in "$@" --; do
  if [ "$word" = -- ]; then
    run "${words[@]}"
    words=()
  else
    words+=("$word")
  fi
done
[ $code = 0 ] || tail -n 30 "$at"/*.log
exit $code
