#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# usage: stranger_test.sh ORRERY FOLDER_OF_EXAMPLES: a process of another user opens everything that it can reach of
# running jobs, and writes there. It gets no memory of theirs, and the jobs end as without it.
set -u
. "$(dirname "$0")/../../skip.sh"
orrery=$1
examples=$2
[ "$(id -u)" = 0 ] || skip root "only root starts a process of another user"
# In a network of its own: abstract names of other jobs on this host are not there.
if [ -z "${STRANGERS_NETWORK:-}" ]; then
  unshare -n true 2>/dev/null || skip namespaces "no network of its own can be made"
  STRANGERS_NETWORK=1 exec unshare -n "$0" "$@"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkfifo "$work/end"
python3 "$(dirname "$0")/stranger.py" $$ <"$work/end" >"$work/got" &
stranger=$!
exec 8>"$work/end"

failed=0
for sockets in "" abstract; do
  for example in amo_counter mailbox allreduce ticket_lock; do
    # The PEs wait a moment, so that it finds them before they join as well.
    said=$(ORRERY_SOCKETS=$sockets timeout 60 "$orrery" run -n 4 sh -c 'sleep 0.3; exec "$0"' "$examples/$example" 2>&1)
    code=$?
    [ $code -eq 0 ] || { echo "$example ${sockets:-usual}: $code: $said"; failed=1; }
  done
done

exec 8>&-
wait $stranger
code=$?
[ $code -ne 77 ] || skip root "$(cat "$work/got")"
[ $code -eq 0 ] || { echo "the stranger ended with $code"; failed=1; }
cat "$work/got"
times() { sed -n "s/^$1: //p" "$work/got" | grep . || echo 0; }
[ "$(times 'sockets reached')" -gt 0 ] || { echo "it reached no socket"; failed=1; }
[ "$(times 'files tried')" -gt 0 ] || { echo "it found no process"; failed=1; }
[ "$(times 'files opened')" -eq 0 ] || { echo "it opened a file of theirs"; failed=1; }
[ "$(times 'descriptors handed out')" -eq 0 ] || { echo "it was handed memory"; failed=1; }
exit $failed
