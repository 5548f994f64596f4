#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# trouble.sh EVENT WORKER: inside two_hosts.sh, runs tests/hosts/steady_worker on both hosts and lets something
# happen meanwhile.
#   link_down  the cable is pulled for 3 s: nothing is lost
#   loss       50 us and 1 % loss on the cable: nothing is lost
#   kill_0, kill_1  the PE of that rank is killed: the other one's operations end in errors, and it ends
set -u
event=$1
worker=$2
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
command -v mpiexec.hydra > /dev/null || { echo "skipped: mpiexec.hydra (package mpich) is not installed"; exit 77; }
run() { "$here/launch.sh" hydra 2 "$@"; }
case $event in
  link_down)
    run "$worker" seconds 6 &
    job=$!
    sleep 2
    ip -n "$NETNS_A" link set cable down
    sleep 3
    ip -n "$NETNS_A" link set cable up
    wait $job
    ;;
  loss)
    tc -n "$NETNS_A" qdisc add dev cable root netem delay 50us loss 1% 2> /dev/null ||
      { echo "skipped: tc netem is not available here"; exit 77; }
    run "$worker" seconds 5
    ;;
  kill_0 | kill_1)
    # The launcher is to let the survivor live, which says what became of it.
    ORRERY_WIRE_TIMEOUT=2000
    HYDRA_ARGUMENTS=-disable-auto-cleanup
    export ORRERY_WIRE_TIMEOUT HYDRA_ARGUMENTS
    said=$(mktemp)
    trap 'rm -f "$said" "$said.log"' EXIT
    trap 'exit 143' HUP INT TERM
    run "$worker" killed "${event#kill_}" "$said" > "$said.log" 2>&1
    grep -q "ended in an error" "$said"
    rc=$?
    cat "$said" "$said.log"
    exit $rc
    ;;
  *)
    echo "trouble.sh: event $event: expected link_down, loss, kill_0 or kill_1" >&2
    exit 2
    ;;
esac
