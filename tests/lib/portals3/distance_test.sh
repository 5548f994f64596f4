#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# distance_test.sh ORRERY WORKER: PtlNIDist is what the machine's route between the two nodes counts, for NIC
# addresses that are not the nodes' numbers too; without a machine it is 0 or 1.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: distance_test.sh ORRERY WORKER" >&2; exit 2; }
orrery=$1
worker=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf 'node 3 pes 0,4\nnode 20 nic 0x12 pes 1\nnode 47 pes 2\nnode 95 nic 3000 pes 3\n' >"$folder/place"
bad=0
# told MACHINE|none: the distances of ranks 0 to 4
told() {
  local choice=()
  [ "$1" = none ] || choice=(--machine "$1")
  "$orrery" run -n 5 --place "$folder/place" "${choice[@]}" "$worker" | sed -n 's/^distance [0-9]* //p' | tr '\n' ' '
}
for machine in seastar gemini aries; do
  expected="0 "
  for node in 20 47 95; do
    hops=$("$orrery" explain put 3 "$node" 8 --machine "$machine" --json | grep -c '"link"' || true)
    expected+="$((hops > 0 ? hops : 1)) "
  done
  expected+="0 "
  got=$(told "$machine")
  [ "$got" = "$expected" ] || { echo "$machine: expected '$expected', got '$got'" >&2; bad=1; }
done
got=$(told none)
[ "$got" = "0 1 1 1 0 " ] || { echo "no machine: got '$got'" >&2; bad=1; }
exit $bad
