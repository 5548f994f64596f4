#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# usage: no_space_test.sh ORRERY CLIENT: two PEs with little address space. What does not fit is said once by
# each, however often the client tries.
set -u
orrery=$1
client=$2

# limited <KiB of address space> <seconds>: runs the client for as long, and leaves what it said in `said`.
limited() {
  said=$(ulimit -v "$1" && exec timeout "$2" "$orrery" run -n 2 "$client" 2>&1)
}

# at_most_once_each <words>
at_most_once_each() {
  local lines
  lines=$(grep -c "$1" <<<"$said")
  [ "$lines" -ge 1 ] && [ "$lines" -le 2 ] || { echo "$lines lines of '$1' in:"; tail -n 20 <<<"$said"; exit 1; }
}

# Room for a peer's segment, not for its memory: frames reach it.
limited 1000000 100 || { echo "$said"; echo "fails with 1 GB of address space"; exit 1; }
at_most_once_each 'it is reached by frames'
# Not even for the segment: the client hears of it.
limited 600000 10 && { echo "works with 600 MB of address space, which is not expected"; exit 1; }
at_most_once_each "no address space: a peer's segment needs"
! grep -q corrupt <<<"$said" || { echo "$said"; exit 1; }
