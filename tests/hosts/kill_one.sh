#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# kill_one.sh TOOL WORKER: two PEs of steady_worker on this host, one of which is killed: the other one's operations end
# in errors, and it ends. Each in turn; with ORRERY_LONG_TESTS=1 200 times.
set -u
tool=$1
worker=$2
said=$(mktemp)
trap 'rm -f "$said"' EXIT
trap 'exit 143' HUP INT TERM
rounds=4
[ "${ORRERY_LONG_TESTS:-0}" = 1 ] && rounds=200
i=0
while [ $i -lt $rounds ]; do
  "$tool" run --keep-going --timeout 60 -n 2 "$worker" killed $((i % 2)) > "$said" 2>&1
  rc=$?
  if [ $rc -ne 137 ] || ! grep -q "rank $(((i + 1) % 2)): operation .* ended in an error" "$said"; then
    echo "kill $i: exit code $rc, expected 137 and a survivor whose operation ended in an error:"
    cat "$said"
    exit 1
  fi
  i=$((i + 1))
done
echo "$rounds kills: every survivor was told"
