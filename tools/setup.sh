#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# Installs the Debian packages that Orrery is built and tested with, those that are missing.
# usage: tools/setup.sh [build|test|hosts|long]   build: enough for the libraries, programs and benchmarks
#                                           test (default): also what checks the tree and the second compiler
#                                           hosts: also the launchers that most tests on several hosts use, and
#                                           an MPI to compile with
#                                           long: also the launchers that jobs on several hosts are tried with
set -euo pipefail

build_packages=(g++ cmake ninja-build pkg-config libfmt-dev libhwloc-dev libfabric-dev libssl-dev libboost-dev
  libtomlplusplus-dev libcli11-dev nlohmann-json3-dev libgtest-dev libgmock-dev libbenchmark-dev python3)
test_packages=(git clang clang-format libclang-rt-14-dev)
hosts_packages=(iproute2 mpich openmpi-bin libopenmpi-dev)

case "${1:-test}" in
  build) wanted=("${build_packages[@]}") ;;
  test) wanted=("${build_packages[@]}" "${test_packages[@]}") ;;
  hosts) wanted=("${build_packages[@]}" "${test_packages[@]}" "${hosts_packages[@]}") ;;
  # libpmix-dev: Slurm opens libpmix.so, which no other package brings
  long) wanted=("${build_packages[@]}" "${test_packages[@]}" "${hosts_packages[@]}" openssh-server slurm-wlm munge libpmix-dev) ;;
  *) echo "setup.sh: '$1' is not build, test, hosts or long" >&2; exit 2 ;;
esac

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: neither root nor sudo; ask an administrator for: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "installing: ${missing[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null
