#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# A program under virtual time prints the same under every launcher that is here, and none of its runs was
# anything but exact: what a launcher takes for its barrier, and where it blocks, is nobody's business.
# usage: launchers_test.sh <orrery> <clock_worker>
set -euo pipefail
exec env REPEAT_RUNS=1 REPEAT_CORES=0 REPEAT_BESIDE=nothing REPEAT_ONLY=messages \
  REPEAT_LAUNCHERS="orrery$(command -v mpiexec.hydra >/dev/null && echo ' hydra')$(command -v mpirun >/dev/null && echo ' mpirun')" \
  "$(dirname "$0")/repeat.sh" "$@"
