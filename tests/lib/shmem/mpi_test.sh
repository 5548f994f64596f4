#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# Builds a program of MPI and OpenSHMEM by the machine's MPI and runs it under that MPI's launcher.
# usage: mpi_test.sh SOURCE INCLUDES LIBRARY...
. "$(dirname "$0")/../../skip.sh"
source=$1 includes=$2
shift 2
command -v mpirun.openmpi > /dev/null || skip mpirun "mpirun (package openmpi-bin) is not installed"
echo '#include <mpi.h>' | mpicc.openmpi -x c -fsyntax-only - > /dev/null 2>&1 ||
  skip mpirun "nothing of MPI can be compiled (package libopenmpi-dev)"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
links=(-Wl,--no-as-needed)
for library in "$@"; do links+=("$library" "-Wl,-rpath,$(dirname "$library")"); done
mpicc.openmpi -I"$includes" "$source" -o "$place/ring" "${links[@]}" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
for first in mpi shmem; do
  timeout 100 mpirun.openmpi -n 3 "$place/ring" $first > "$place/said" 2>&1 < /dev/null
  code=$?
  if [ $code -ne 0 ] || ! grep -q "ring: right" "$place/said"; then
    echo "$first first: exit code $code"
    cat "$place/said"
    exit 1
  fi
done
