#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# launch.sh LAUNCHER PES PROGRAM [ARGUMENT...]: inside two_hosts.sh, runs the program on both hosts, half of
# the PEs on each. LAUNCHER: hydra, mpirun, or orrery ($TESTED_TOOL run).
set -u
. "$(dirname "$0")/../skip.sh"
[ $# -ge 3 ] || { echo "usage: launch.sh hydra|mpirun|orrery PES PROGRAM [ARGUMENT...]" >&2; exit 2; }
launcher=$1
pes=$2
shift 2
each=$((pes / 2))
case $launcher in
  hydra)
    command -v mpiexec.hydra > /dev/null || skip hydra "mpiexec.hydra (package mpich) is not installed"
    # shellcheck disable=SC2086
    exec mpiexec.hydra ${HYDRA_ARGUMENTS:-} -localhost "$HOST_A" -launcher ssh -launcher-exec "$HOST_EXEC" \
      -hosts "$HOST_A,$HOST_B" -ppn "$each" -n "$pes" "$@"
    ;;
  mpirun)
    command -v mpirun.openmpi > /dev/null || skip mpirun "mpirun (package openmpi-bin) is not installed"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    exec mpirun.openmpi --oversubscribe --mca plm_rsh_agent "$HOST_EXEC" --mca oob_tcp_if_include cable \
      -x TWO_HOSTS --host "$HOST_A:$each,$HOST_B:$each" -n "$pes" "$@"
    ;;
  orrery)
    # shellcheck disable=SC2086
    exec "$TESTED_TOOL" run --hosts "[$HOST_A],[$HOST_B]" --launcher-exec "$HOST_EXEC" ${RUN_ARGUMENTS:-} -n "$pes" "$@"
    ;;
  *)
    echo "launch.sh: launcher $launcher: expected hydra, mpirun or orrery" >&2
    exit 2
    ;;
esac
