#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# Installs what is missing, builds, and runs a uGNI put ping-pong between two processes, printed as a table of
# sizes and latencies. Arguments go to the benchmark (build/release/bench/orrery_put_latency --help).
# usage: tools/demo.sh [options of bench/osu/put_latency.cpp]
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh build

mkdir -p build
echo "building; details are in build/demo.log"
if ! { cmake --preset release && cmake --build --preset release --target orrery_tool orrery_put_latency gni_put orrery_log_gni; } \
  >build/demo.log 2>&1; then
  tail -n 40 build/demo.log
  exit 1
fi
exec build/release/tools/orrery/orrery run -n 2 build/release/bench/orrery_put_latency "$@"
