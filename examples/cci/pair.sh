#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# usage: pair.sh PROGRAM: starts it as a server, and as a client of it by the URI that it prints; on two hosts where
# tests/hosts/two_hosts.sh made them. Exit code: the client's, or 1 when the server did not end well.
program=$1
uri=$(mktemp)
${HOST_EXEC:+"$HOST_EXEC" "$HOST_B"} "$program" > "$uri" &
server=$!
looks=0
while [ ! -s "$uri" ]; do
  looks=$((looks + 1))
  [ $looks -lt 300 ] || { echo "the server prints no URI"; kill $server; rm -f "$uri"; exit 1; }
  sleep 0.1
done
"$program" "$(cat "$uri")"
code=$?
rm -f "$uri"
wait $server || { echo "the server failed"; exit 1; }
exit $code
