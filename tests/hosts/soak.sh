#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# soak.sh TOOL WORKER: two PEs that work on each other's memory by a wire that drops, corrupts, doubles, reorders and
# delays one frame in a thousand each, and check everything against a model. For $SOAK_SECONDS, else 3 s, or
# 60 s with ORRERY_LONG_TESTS=1.
set -u
seconds=3
[ "${ORRERY_LONG_TESTS:-0}" = 1 ] && seconds=60
seconds=${SOAK_SECONDS:-$seconds}
ORRERY_WIRE=ofi
ORRERY_WIRE_FAULTS=drop=0.001,corrupt=0.001,duplicate=0.001,reorder=0.001,delay=0.001,seed=7
export ORRERY_WIRE ORRERY_WIRE_FAULTS
exec "$1" run -n 2 --timeout $((seconds + 400)) "$2" soak "$seconds"
