#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# The PMI client under MPICH's launcher: its own server of the PMI-1 wire, not ours.
if ! command -v mpiexec.hydra > /dev/null; then
  echo "skipped: mpiexec.hydra (package mpich) is not installed"
  exit 77
fi
# A directory of its own, so that tests that run at the same time do not meet.
ORRERY_JOB="hydra-test-$$" exec timeout 60 mpiexec.hydra -n 3 "$1" 3 1
