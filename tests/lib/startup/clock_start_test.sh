#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# What is said at the start of a run in a machine's time. usage: clock_start_test.sh ORRERY COUNTER_CLIENT OTHER_CLIENT
said() { "$1" run --timeout 60 -n 2 --machine aries "${@:2}" 2>&1; }
fail() { echo "FAILED: $*"; exit 1; }
lines=$(said "$1" "$2") || fail "the program that reads the counter ends with $?: $lines"
if [ "$(uname -m)" = x86_64 ]; then
  [ "$(grep -c rdtsc <<<"$lines")" = 1 ] || fail "not one line about the counter: '$lines'"
fi
lines=$("$1" run --timeout 60 -n 2 "$2" 2>&1)
[ -z "$lines" ] || fail "without a machine: '$lines'"
lines=$(said "$1" "$3" plain 2) || fail "the other program ends with $?: $lines"
grep -q rdtsc <<<"$lines" && fail "it reads no counter: '$lines'"
if command -v valgrind > /dev/null; then
  lines=$(said "$1" valgrind -q "$3" plain 2)
  [ $? -ne 0 ] && grep -q "valgrind cannot run a program in virtual time" <<<"$lines" || fail "under valgrind: '$lines'"
fi
exit 0
