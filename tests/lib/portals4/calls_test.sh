#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# calls_test.sh MAP SOURCE: every call of the interface that a library exports (MAP) is made in SOURCE.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: calls_test.sh MAP SOURCE" >&2; exit 2; }
calls=$(grep -oE '^ +Ptl[A-Za-z]+;' "$1" | tr -d ' ;')
[ -n "$calls" ] || { echo "$1 names no call" >&2; exit 1; }
bad=0
for call in $calls; do
  grep -qE "\b$call\(" "$2" || { echo "$2: $call is not made" >&2; bad=1; }
done
echo "$(wc -w <<< "$calls") calls"
exit $bad
