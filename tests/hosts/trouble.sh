#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# trouble.sh EVENT WORKER: inside two_hosts.sh, runs tests/hosts/steady_worker on both hosts ($TESTED_TOOL run) and
# lets something happen meanwhile.
#   link_down  the cable is pulled for 3 s: nothing is lost
#   cut        the cable is pulled for good: the operations of both end in errors, and both end
#   loss       50 us and 1 % loss on the cable, both ways: nothing is lost
#   kill       the PE of one side is killed, then of the other: each time the other one's operations end in errors,
#              and it ends. With ORRERY_LONG_TESTS=1 200 times.
set -u
event=$1
worker=$2
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
run() { "$here/launch.sh" orrery 2 "$@"; }
said=$(mktemp)
started=$(mktemp)
trap 'rm -f "$said" "$started"' EXIT
trap 'exit 143' HUP INT TERM
# The worker, in the background; returns when both PEs have done a round, or when it ends.
start() {
  run env STEADY_STARTED="$started" "$worker" "$@" > "$said" 2>&1 &
  job=$!
  while [ "$(wc -l < "$started")" -lt 2 ] && kill -0 $job 2> /dev/null; do sleep 0.05; done
}
# The PEs that said that an operation ended in an error.
errors() { grep -c "ended in an error" "$said"; }
case $event in
  link_down)
    start seconds 6
    ip -n "$NETNS_A" link set cable down
    sleep 3
    ip -n "$NETNS_A" link set cable up
    wait $job
    rc=$?
    cat "$said"
    [ $rc -eq 0 ]
    ;;
  cut)
    ORRERY_WIRE_TIMEOUT=2000
    export ORRERY_WIRE_TIMEOUT
    start severed 0
    ip -n "$NETNS_A" link set cable down
    wait $job
    rc=$?
    cat "$said"
    [ $rc -eq 0 ] && [ "$(errors)" -eq 2 ]
    ;;
  loss)
    "$here/bad_link.sh" 50 1 "$here/launch.sh" orrery 2 "$worker" seconds 5
    ;;
  kill)
    # The launcher is to let the survivor live, which says what became of it.
    ORRERY_WIRE_TIMEOUT=1000
    RUN_ARGUMENTS=--keep-going
    export ORRERY_WIRE_TIMEOUT RUN_ARGUMENTS
    rounds=2
    [ "${ORRERY_LONG_TESTS:-0}" = 1 ] && rounds=200
    i=0
    while [ $i -lt $rounds ]; do
      run "$worker" killed $((i % 2)) > "$said" 2>&1
      rc=$?
      if [ $rc -ne 137 ] || [ "$(errors)" -ne 1 ] || ! grep -q "rank $(((i + 1) % 2)): operation" "$said"; then
        echo "kill $i: exit code $rc, expected 137 and one survivor whose operation ended in an error:"
        cat "$said"
        exit 1
      fi
      # All that runs on the other host was started by the job.
      left=$(ip netns pids "$NETNS_B")
      if [ -n "$left" ]; then
        echo "kill $i: processes are left: $left"
        exit 1
      fi
      i=$((i + 1))
    done
    echo "$rounds kills: every survivor was told, nothing is left"
    ;;
  *)
    echo "trouble.sh: event $event: expected link_down, cut, loss or kill" >&2
    exit 2
    ;;
esac
