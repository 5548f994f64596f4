#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# maps_test.sh WORKER: three processes that no launcher started find each other by the maps in their
# environment; maps that say nothing are refused with their name.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: maps_test.sh WORKER" >&2; exit 2; }
worker=$1
export ORRERY_JOB=portals3-maps-$$
export PTL_NIDMAP=10.0.0.1:0x0a000002:10.0.0.1 PTL_PIDMAP=1000:1001:1002
pids=()
for rank in 0 1 2; do
  PTL_MY_RID=$rank "$worker" &
  pids+=($!)
done
bad=0
for pid in "${pids[@]}"; do wait "$pid" || bad=1; done
# refused RANK NIDMAP PIDMAP WORDS
refused() {
  local said
  if said=$(PTL_MY_RID=$1 PTL_NIDMAP=$2 PTL_PIDMAP=$3 "$worker" 2>&1); then
    echo "accepted: rank $1, maps $2 and $3" >&2
    bad=1
  elif [[ "$said" != *"$4"* ]]; then
    echo "rank $1, maps $2 and $3: expected '$4', got: $said" >&2
    bad=1
  fi
}
refused 3 1:1:1 1:2:3 "PTL_MY_RID=3"
refused one 1:1 1:2 "PTL_MY_RID=one"
refused 0 1:1 1 "PTL_NIDMAP has 2 entries, PTL_PIDMAP 1"
refused 0 1: 1:2 "PTL_NIDMAP=1:"
refused 0 1:1 1:x "PTL_PIDMAP=1:x"
exit $bad
