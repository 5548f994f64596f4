#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# usage: crowd.sh PROGRAM CLIENTS: starts it as a server, and as many clients of it at once.
program=$1
clients=$2
here=$(mktemp -d)
"$program" "$clients" > "$here/server" &
server=$!
looks=0
while [ ! -s "$here/server" ]; do
  looks=$((looks + 1))
  [ $looks -lt 300 ] || { echo "the server prints no URI"; kill $server; rm -rf "$here"; exit 1; }
  sleep 0.1
done
uri=$(head -n 1 "$here/server")
i=0
while [ $i -lt "$clients" ]; do
  i=$((i + 1))
  { "$program" "$uri" || echo "client $i" >> "$here/failed"; } &
done
wait $server
code=$?
wait
tail -n 1 "$here/server"
if [ $code = 0 ] && [ ! -e "$here/failed" ]; then echo "crowd: right"; else echo "crowd: WRONG"; code=1; fi
rm -rf "$here"
exit $code
