#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# host_exec.sh [ssh's options] HOST COMMAND [ARGUMENT...]: runs a command on one of the hosts that two_hosts.sh
# made, as ssh would: the words are joined by blanks and read by a shell when there is more than a program.
while [ $# -gt 0 ]; do
  case $1 in
    -l | -o | -p | -i) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
host=$1
shift
case $host in
  "$HOST_A") netns=$NETNS_A ;;
  "$HOST_B") netns=$NETNS_B ;;
  *)
    echo "host_exec.sh: host $host: expected $HOST_A or $HOST_B" >&2
    exit 255
    ;;
esac
# The words of a remote command are one line of shell, as with ssh.
line="$*"
exec ip netns exec "$netns" unshare --mount --uts --ipc sh -c '
  hostname "host-$1" 2> /dev/null
  mount -t tmpfs -o size=64m tmpfs /dev/shm 2> /dev/null
  eval "$2"' sh "$netns" "$line"
