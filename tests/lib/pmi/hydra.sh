#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# The PMI client under MPICH's launcher: its own server of the PMI-1 wire, not ours.
. "$(dirname "$0")/../../skip.sh"
command -v mpiexec.hydra > /dev/null || skip hydra "mpiexec.hydra (package mpich) is not installed"
# A directory of its own, so that tests that run at the same time do not meet.
ORRERY_JOB="hydra-test-$$" exec timeout 60 mpiexec.hydra -n 3 "$1" 3 1
