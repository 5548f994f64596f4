#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# two_hosts.sh COMMAND [ARGUMENT...]: runs the command on the first of two pretended hosts, and removes both
# when it ends. A host is a network namespace joined to the other one by a pair of virtual cables; what is run
# on it (the command itself, and whatever goes through $HOST_EXEC) has mount, UTS and IPC namespaces and a
# /dev/shm of its own, so that nothing of the one is seen on the other. The command finds in its environment
#   HOST_A, HOST_B         addresses of the hosts, also good as their names
#   NETNS_A, NETNS_B       names of the network namespaces, for `ip -n` and `tc -n`
#   HOST_EXEC              a program that runs commands there, called like ssh: HOST_EXEC HOST COMMAND...
#   TWO_HOSTS=1
# With TWO_HOSTS_IPV6=1 the hosts have addresses of IPv6 alone, and the kernel still examines them when the command
# starts (duplicate address detection).
# Exit code: the command's; 77 (skipped) where no network namespaces can be made.
set -u
[ $# -gt 0 ] || { echo "usage: two_hosts.sh COMMAND [ARGUMENT...]" >&2; exit 2; }
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
# Addresses mean something between these two only: tests may run beside each other.
HOST_A=10.77.0.1
HOST_B=10.77.0.2
bits=24
if [ "${TWO_HOSTS_IPV6:-0}" = 1 ]; then
  HOST_A=fd00:77::1
  HOST_B=fd00:77::2
  bits=64
fi
NETNS_A=orrery-a-$$
NETNS_B=orrery-b-$$
. "$here/../skip.sh"
command -v ip > /dev/null || skip namespaces "ip (package iproute2) is not installed"
command -v unshare > /dev/null || skip namespaces "unshare (package util-linux) is not installed"
remove_hosts() {
  for netns in "$@"; do
    # Nothing that was started there outlives the host.
    for pid in $(ip netns pids "$netns" 2> /dev/null); do kill -9 "$pid" 2> /dev/null; done
    ip netns delete "$netns" 2> /dev/null
  done
}
# Hosts of a run that was killed (ctest's time-out is a SIGKILL) have no owner: the number in the name is its pid.
for netns in $(ip netns list 2> /dev/null | sed -n 's/^\(orrery-[ab]-[0-9]*\).*/\1/p'); do
  kill -0 "${netns##*-}" 2> /dev/null || remove_hosts "$netns"
done
# Before there is anything to remove: what comes between is not left behind.
trap 'remove_hosts "$NETNS_A" "$NETNS_B"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
ip netns add "$NETNS_A" 2> /dev/null || skip namespaces "network namespaces may not be made here (not root, or a container)"
ip netns add "$NETNS_B" &&
  ip link add cable netns "$NETNS_A" type veth peer name cable netns "$NETNS_B" &&
  ip -n "$NETNS_A" addr add "$HOST_A/$bits" dev cable &&
  ip -n "$NETNS_B" addr add "$HOST_B/$bits" dev cable &&
  ip -n "$NETNS_A" link set lo up && ip -n "$NETNS_B" link set lo up &&
  ip -n "$NETNS_A" link set cable up && ip -n "$NETNS_B" link set cable up ||
  skip namespaces "virtual network cables may not be made here"
if [ $bits = 64 ]; then
  ip -n "$NETNS_A" addr del 127.0.0.1/8 dev lo 2> /dev/null
  ip -n "$NETNS_B" addr del 127.0.0.1/8 dev lo 2> /dev/null
fi
HOST_EXEC=$here/host_exec.sh
TWO_HOSTS=1
export HOST_A HOST_B NETNS_A NETNS_B HOST_EXEC TWO_HOSTS
# In the background, with our input: a shell takes a signal at once only while it waits.
exec 3<&0
"$HOST_EXEC" "$HOST_A" "$@" <&3 3<&- &
wait $!
