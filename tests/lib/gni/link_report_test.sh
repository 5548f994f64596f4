#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# The page of link loads of a run, opened in headless Chromium: what its script drew is read back from it.
# usage: link_report_test.sh <orrery> <clock_worker>
set -euo pipefail
. "$(dirname "$0")/../../skip.sh"
. "$(dirname "$0")/../../tools/model/check.sh"
worker=$2

refuses "--link-report needs virtual time" run --link-report "$folder/x.html" "$worker" ping_pong
refuses "cannot be written" run --machine aries --link-report "$folder/no/such/x.html" "$worker" ping_pong

# report <page> <arguments of run...>
report() {
  local page=$1; shift
  "$orrery" run --timeout 100 --link-report "$page" "$@" >/dev/null || fail "orrery run $*"
  [ -s "$page" ] || fail "$*: no page"
  ! ls "$page".pe.* >/dev/null 2>&1 || fail "$*: records are left"
}
# Seven PEs to PE 0, all over one Gemini's links; 50 puts of 512 B each.
report "$folder/gemini.html" -n 8 --machine gemini "$worker" hot_spot
grep -q "350 messages with 179200 B" "$folder/gemini.html" || fail "gemini: not what was sent"
grep -q "<td>node 0 " "$folder/gemini.html" || fail "gemini: node 0 is not the one that most was sent to"
report "$folder/aries.html" -n 6 --machine aries "$worker" all_to_all 30
report "$folder/tree.html" -n 6 --machine asci-q "$worker" all_to_all 30
report "$folder/ideal.html" -n 2 --machine ideal "$worker" ping_pong

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || skip browser "no chromium here"

# opened <page> <links at least> <routers at least>
opened() {
  local dom links routers
  dom=$(timeout 100 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --user-data-dir="$folder/profile" \
    --dump-dom "file://$1" 2>/dev/null) || fail "chromium did not open $1"
  links=$(sed -n 's/.*<body[^>]*data-links="\([0-9]*\)".*/\1/p' <<<"$dom" | head -1)
  routers=$(sed -n 's/.*<body[^>]*data-routers="\([0-9]*\)".*/\1/p' <<<"$dom" | head -1)
  [ -n "$links" ] && [ "$links" -ge "$2" ] || fail "$1: $links links drawn, not $2 or more"
  [ -n "$routers" ] && [ "$routers" -ge "$3" ] || fail "$1: $routers routers drawn, not $3 or more"
}
opened "$folder/gemini.html" 3 1920
opened "$folder/aries.html" 2 2
opened "$folder/tree.html" 8 1000
opened "$folder/ideal.html" 0 2
