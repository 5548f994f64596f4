#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# usage: scenarios.sh PROGRAM: a server and a client for each kind of connection, polling and blocking, each pair of
# new processes. Exit code: how many pairs went wrong.
program=$1
wrong=0
pair() {
  uri=$(mktemp)
  "$program" serve "$2" > "$uri" &
  server=$!
  looks=0
  while [ ! -s "$uri" ]; do
    looks=$((looks + 1))
    [ $looks -lt 600 ] || { echo "the server prints no URI"; kill $server; rm -f "$uri"; exit 1; }
    sleep 0.1
  done
  "$program" ask "$(cat "$uri")" "$1" "$3"
  code=$?
  rm -f "$uri"
  # A client that failed has not told the server to end.
  [ $code = 0 ] || kill $server
  wait $server
  served=$?
  [ $code = 0 ] && [ $served = 0 ] && return
  echo "$1, server $2, client $3: client $code, server $served"
  wrong=$((wrong + 1))
}
for kind in RO RU UU; do
  pair $kind poll poll
  pair $kind block block
  pair $kind poll block
done
exit $wrong
