#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# usage: no_proc_test.sh ORRERY CLIENT: a job of two PEs where /proc is not mounted, as in some containers. 77
# when this user may not have mounts of its own.
set -u
. "$(dirname "$0")/../../skip.sh"
orrery=$1
client=$2
own=(unshare --mount)
[ "$(id -u)" -eq 0 ] || own=(unshare --user --map-root-user --mount)
"${own[@]}" mount -t tmpfs none /proc 2>/dev/null || skip mounts "no mounts of its own may be made here"
# shellcheck disable=SC2016
said=$("${own[@]}" sh -c 'mount -t tmpfs none /proc && exec timeout 100 "$0" run -n 2 "$1"' "$orrery" "$client" 2>&1)
code=$?
# A peer that lives is taken for dead by a runtime that looks for it in /proc.
[ $code -eq 0 ] || { echo "$said"; echo "exit code $code"; exit 1; }
[ "$(grep -c 'all memory is reached by frames' <<<"$said")" -eq 2 ] || { echo "$said"; echo "not said once a PE"; exit 1; }
