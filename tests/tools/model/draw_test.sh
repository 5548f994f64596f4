#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# Pages are opened in headless Chromium; what its script drew is read back from the page.
set -euo pipefail
. "$(dirname "$0")/../../skip.sh"
. "$(dirname "$0")/check.sh"

says "$folder/aries.html" draw --machine aries --groups 8 --out "$folder/aries.html"
python3 - "$orrery" "$folder/torus.html" <<'PY'
import json, os, subprocess, sys
d = json.loads(subprocess.check_output([sys.argv[1], "draw", "--json", "--machine", "gemini", "--out", sys.argv[2], "--dst", "1234"]))
assert (d["machine"], d["nodes"], d["routers"], d["target"]) == ("gemini", 3840, 1920, 1234), d
assert d["bytes"] == os.path.getsize(sys.argv[2]) and len(d["route"]) >= 1, d
e = json.loads(subprocess.check_output([sys.argv[1], "explain", "--json", "--machine", "gemini", "put", "0", "1234", "8"]))
assert len(d["route"]) == len(e["route"]) and d["data_at_ps"] == e["data_at_ps"], (d, e)
PY
refuses "--groups 300: expected 1..241" draw --machine aries --groups 300 --out "$folder/x.html"
refuses "--groups 0: expected 1..241" draw --machine aries --groups 0 --out "$folder/x.html"
refuses "--cables -5: expected 0..240" draw --machine aries --cables -5 --out "$folder/x.html"
# As words, as 'orrery explain' has them.
says "$folder/words.html" draw --machine aries --out "$folder/words.html" put 0 3000 64
grep -q "put of 64 B from node 0 .* to node 3000" "$folder/words.html" || fail "draw put 0 3000 64 draws something else"
refuses "an argument that is not expected: twice" draw --out "$folder/x.html" put 0 3000 64 twice
refuses "arguments that are not expected: these are typed in order" draw --out "$folder/x.html" put 0 3000 64 these are typed in order
refuses "the machine is given by --machine aries" draw --out "$folder/x.html" aries
refuses "--levels 0: expected 1..8" draw --machine asci-q --levels 0 --out "$folder/x.html"
refuses "--dst -1: expected a node 0..3071" draw --machine aries --dst -1 --out "$folder/x.html"
refuses "--levels needs a fat tree" draw --machine aries --levels 3 --out "$folder/x.html"
refuses "--dst 99999: expected a node 0..3071" draw --machine aries --dst 99999 --out "$folder/x.html"
refuses "cannot be written" draw --machine aries --out "$folder/no/such/x.html"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || skip browser "no chromium here"

# opened <routers> <most hops> <arguments of draw...>
opened() {
  local routers=$1 most=$2; shift 2
  "$orrery" draw --out "$folder/page.html" "$@" > /dev/null
  local dom
  dom=$(timeout 100 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --user-data-dir="$folder/profile" \
    --dump-dom "file://$folder/page.html" 2>/dev/null) || fail "chromium did not open the page of: $*"
  local shown hops
  shown=$(sed -n 's/.*<body[^>]*data-routers="\([0-9]*\)".*/\1/p' <<<"$dom" | head -1)
  hops=$(sed -n 's/.*<body[^>]*data-hops="\([0-9]*\)".*/\1/p' <<<"$dom" | head -1)
  [ "$shown" = "$routers" ] || fail "$*: $shown routers drawn, not $routers"
  [ -n "$hops" ] && [ "$hops" -ge 1 ] && [ "$hops" -le "$most" ] || fail "$*: $hops hops drawn"
}
opened 768 5 --machine aries --groups 8
opened 1920 32 --machine gemini
opened 112 6 --machine asci-q --levels 3
