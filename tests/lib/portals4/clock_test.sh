#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# clock_test.sh ORRERY CLOCK_WORKER MACHINE: what a Portals program measures under virtual time is the model's
# price, and the same to the byte in every run, on one core and on two.
set -euo pipefail
[ $# -eq 3 ] || { echo "usage: clock_test.sh ORRERY CLOCK_WORKER MACHINE" >&2; exit 2; }
orrery=$1
worker=$2
machine=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run() { "$@" "$orrery" run -n 8 --machine "$machine" "$worker" 2>"$folder/err" | sort; }
run >"$folder/first"
[ -s "$folder/first" ] || { cat "$folder/err" >&2; exit 1; }
run >"$folder/second"
run taskset -c 0 >"$folder/third"
for other in second third; do
  cmp "$folder/first" "$folder/$other" || { diff "$folder/first" "$folder/$other" >&2; exit 1; }
done
cat "$folder/first"

# price OPERATION FROM BYTES FIELD: picoseconds, to the next node
price() {
  "$orrery" explain "$1" "$2" $(($2 + 1)) "$3" --machine "$machine" --json | sed -n "s/^  \"$4\": \([0-9]*\),*$/\1/p"
}
bad=0
# compare WORD BYTES OPERATION FIELD
compare() {
  local measured ps
  measured=$(sed -n "s/^$1 $2 //p" "$folder/first" | head -n 1)
  ps=$(price "$3" 0 "$2" "$4")
  if [ -z "$measured" ] || [ -z "$ps" ] || [ $((measured - ps / 1000)) -gt 1 ] || [ $((measured - ps / 1000)) -lt -1 ]; then
    echo "$1 of $2 bytes: measured '$measured' ns, $3 is priced '$ps' ps" >&2
    bad=1
  fi
}
for bytes in 8 32 33 4096; do compare put $bytes portals.Put remote_event_at_ps; done
for bytes in 8 4096; do
  compare ack $bytes portals.Put.ack local_event_at_ps
  compare get $bytes portals.Get local_event_at_ps
done
# Only Portals 4 has atomics, and triggered operations; its worker prints a tree of them.
if grep -q '^tree ' "$folder/first"; then
  compare fetch 8 portals.FetchAtomic local_event_at_ps
  # A chain of triggered puts through programs that sleep takes what the puts take.
  chain=0
  for node in 0 1 2 3 4 5 6; do chain=$((chain + $(price matched_put $node 8 remote_event_at_ps))); done
  relay=$(sed -n 's/^relay 7 //p' "$folder/first")
  if [ -z "$relay" ] || [ $((relay - chain / 1000)) -gt 7 ] || [ $((relay - chain / 1000)) -lt -7 ]; then
    echo "a chain of 7 triggered puts: measured '$relay' ns, priced '$chain' ps" >&2
    bad=1
  fi
  if [ "$(grep -c '^sleep [0-6] 50000000$' "$folder/first")" != 7 ]; then
    echo "programs whose NICs worked meanwhile did not sleep for 50 ms" >&2
    bad=1
  fi
fi
exit $bad
