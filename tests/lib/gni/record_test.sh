#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# What a program asked of the network, recorded and replayed in the packet simulator.
# usage: record_test.sh <orrery> <clock_worker>
set -euo pipefail
. "$(dirname "$0")/../../tools/model/check.sh"
worker=$2

refuses "--record needs virtual time" run --record "$folder/x" "$worker" ping_pong
refuses "cannot be written" run --machine aries --record "$folder/no/such/x" "$worker" ping_pong
refuses "--json $folder/x is --record's file too" run --machine aries --record "$folder/x" --json "$folder/x" "$worker" ping_pong

# recorded <trace> <arguments of run...>
recorded() {
  local trace=$1; shift
  "$orrery" run --timeout 100 --record "$trace" "$@" >/dev/null || fail "orrery run $*"
  [ -s "$trace" ] || fail "$*: no trace"
  ! ls "$trace".pe.* >/dev/null 2>&1 || fail "$*: records are left"
}
# replayed <trace> <packets> <arguments of sim...>: to the end, nothing lost, that many packets.
replayed() {
  local trace=$1 packets=$2 said; shift 2
  said=$("$orrery" sim --replay "$trace" --quiet "$@" 2>&1) || fail "sim $*: $said"
  grep -q "ended: finished" <<<"$said" || fail "sim $*: not to its end: $said"
  grep -q "packets: $packets sent .* $packets delivered.*conserved" <<<"$said" || fail "sim $*: not $packets packets: $said"
}
# Seven PEs put 50 times 512 B each to PE 0: in packets of 64 B on Gemini and Aries, of 240 B on Blue Gene/L.
recorded "$folder/puts" -n 8 --machine gemini "$worker" hot_spot
replayed "$folder/puts" 2800 --machine gemini --nodes 4x4x4
replayed "$folder/puts" 2800 --machine aries --nodes 1
replayed "$folder/puts" 1050 --machine bluegene-l --nodes 4x4x4
refuses "8 processes on 4 nodes" sim --replay "$folder/puts" --machine bluegene-l --nodes 4x1x1

# The bytes that come back to PEs that took something, by fetching atomics and gets.
recorded "$folder/gets" -n 3 --machine aries "$worker" stealing 20
"$orrery" sim --replay "$folder/gets" --machine aries --nodes 1 --quiet | grep -q "ended: finished" || fail "gets: not to their end"
