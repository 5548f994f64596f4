#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# Installs what is missing, builds, and runs the emulator's base tests.
# usage: tools/demo.sh
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh build

mkdir -p build
echo "building; details are in build/demo.log"
if ! { cmake --preset release && cmake --build --preset release --target base_test; } \
  >build/demo.log 2>&1; then
  tail -n 40 build/demo.log
  exit 1
fi
exec build/release/tests/emu/base/base_test
