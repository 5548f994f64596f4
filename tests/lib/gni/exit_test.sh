#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# usage: exit_test.sh ORRERY WORKER: a process ends while threads of it wait in the library, in every way that
# programs end, again and again.
set -u
orrery=$1
worker=$2
for how in return exit _exit quick_exit; do
  for after in 0 100 1000 5000 100 100 0 0; do
    timeout 30 "$orrery" run -n 1 "$worker" "$how" "$after"
    code=$?
    [ $code -eq 0 ] || { echo "$how after $after us: $code"; exit 1; }
  done
done
