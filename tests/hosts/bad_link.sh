#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# bad_link.sh DELAY_US LOSS_PERCENT COMMAND [ARGUMENT...]: inside two_hosts.sh, runs the command while every frame
# on the cable comes so much later, or never, both ways. By tc netem; where the kernel has none the cable is
# replaced by tests/hosts/bad_link.cpp ($BAD_LINK). Exit code: the command's; 1 when the link was not as bad as
# asked for; 77 (skipped) where there is neither.
set -u
[ $# -ge 3 ] || { echo "usage: bad_link.sh DELAY_US LOSS_PERCENT COMMAND [ARGUMENT...]" >&2; exit 2; }
delay=$1
percent=$2
shift 2
# was_bad DROPPED DELAY: so many frames were dropped, and the others came so late (microseconds).
was_bad() {
  if [ "$percent" != 0 ] && [ "$1" -eq 0 ]; then
    echo "bad_link.sh: no frame was dropped"
    return 1
  fi
  [ "$2" -ge "$delay" ] || { echo "bad_link.sh: the delay was $2 us, expected $delay at least"; return 1; }
}
add_netem() { tc -n "$1" qdisc add dev cable root netem delay "${delay}us" loss "$percent%" 2> /dev/null; }
dropped_by_netem() { tc -n "$1" -s qdisc show dev cable | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p'; }
if command -v tc > /dev/null && add_netem "$NETNS_A" && add_netem "$NETNS_B"; then
  "$@"
  rc=$?
  dropped=$(($(dropped_by_netem "$NETNS_A") + $(dropped_by_netem "$NETNS_B")))
  echo "netem: $dropped dropped"
  [ $rc -eq 0 ] || exit $rc
  was_bad $dropped "$delay"
  exit
fi

[ -x "${BAD_LINK:-}" ] || { echo "bad_link.sh: BAD_LINK: expected the program bad_link" >&2; exit 2; }
link=
said=$(mktemp -d) || exit 1
# Whatever becomes of the command, the relay ends too.
trap '[ -z "$link" ] || kill $link 2> /dev/null; rm -rf "$said"' EXIT
trap 'exit 143' HUP INT TERM
ip -n "$NETNS_A" link del cable
mkfifo "$said/fifo"
"$BAD_LINK" "$NETNS_A" "$NETNS_B" cable "$delay" "$percent" 1 > "$said/fifo" &
link=$!
exec 4< "$said/fifo"
# Both ends are open: no name is left behind by a shell that is killed.
rm -rf "$said"
if ! read -r _ <&4; then
  wait $link
  rc=$?
  link=
  [ $rc -ne 77 ] || echo "skipped: neither tc netem nor TAP devices are available here"
  exit $rc
fi
ip -n "$NETNS_A" addr add "$HOST_A/24" dev cable && ip -n "$NETNS_B" addr add "$HOST_B/24" dev cable &&
  ip -n "$NETNS_A" link set cable up && ip -n "$NETNS_B" link set cable up || exit 1
"$@" 4<&-
rc=$?
kill $link
read -r report <&4
wait $link || { echo "bad_link.sh: the relay failed"; exit 1; }
link=
echo "bad_link: $report"
[ $rc -eq 0 ] || exit $rc
dropped=$(echo "$report" | sed -n 's/.* carried, \([0-9]*\) dropped.*/\1/p')
median=$(echo "$report" | sed -n 's/.* delay \([0-9]*\) us median.*/\1/p')
was_bad "${dropped:-0}" "${median:-0}"
