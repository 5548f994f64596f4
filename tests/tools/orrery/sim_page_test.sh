#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# How full virtual channels were, in the JSON and on the page. The page is opened in headless Chromium; a script
# that the test adds reads back what is drawn.
#   sim_page_test.sh <orrery>
set -euo pipefail
. "$(dirname "$0")/../../skip.sh"
orrery=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

"$orrery" sim --nodes 4x4x4 hot-region --load 0.9 --warmup-us 1000 --until-us 100 --sample-us 10 --quiet \
  --json --html "$folder/bgl.html" > "$folder/bgl.json"
"$orrery" sim --machine aries --nodes 2 uniform --load 0.9 --warmup-us 100 --until-us 2 --sample-us 0.2 --quiet \
  --json --html "$folder/aries.html" > "$folder/aries.json"
"$orrery" sim --machine asci-q --nodes 64 uniform --load 0.3 --warmup-us 1000 --until-us 200 --sample-us 10 --quiet \
  --json --html "$folder/quadrics.html" > "$folder/quadrics.json"
python3 - "$folder" <<'PY'
import json, sys
for name, vcs, looked in ("bgl", 4, "dynamic 0"), ("aries", 8, "request 0"), ("quadrics", 2, "first circuit"):
    d = json.load(open(f"{sys.argv[1]}/{name}.json"))
    columns, rows = d["vc_occupancy_columns"], d["vc_occupancy"]
    assert len(columns) == 1 + 2 * vcs and columns[0] == "ns", columns
    assert len(rows) == len(d["samples"]) >= 9, (len(rows), len(d["samples"]))
    mean, fullest = columns.index(looked + " mean"), columns.index(looked + " fullest")
    for row, sample in zip(rows, d["samples"]):
        assert len(row) == len(columns) and row[0] == sample[0], row
        assert all(0 <= m <= f <= 1 for m, f in zip(row[1::2], row[2::2])), row
    assert set(d) == set(json.load(open(f"{sys.argv[1]}/quadrics.json"))), "keys differ"
    assert rows[-1][fullest] > 0.1 and rows[-1][mean] > 0.01, rows[-1]
PY

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || skip browser "no chromium here"

# opened <page> <virtual channels> <samples>
opened() {
  sed 's|</body>|<script>\
const charts = [...document.querySelectorAll("svg")].filter(s => s.textContent.includes("% taken"));\
const lines = charts.flatMap(s => [...s.querySelectorAll("polyline")]);\
const inside = lines.filter(l => { const box = l.getBBox(), view = l.ownerSVGElement.viewBox.baseVal;\
  return box.width > 100 \&\& box.x >= 0 \&\& box.y >= 0 \&\& box.x + box.width <= view.width \&\&\
         box.y + box.height <= view.height; });\
const raised = lines.filter(l => l.getBBox().height > 50);\
document.body.dataset.drawn = [charts.length, lines.length, inside.length, lines[0].points.length,\
  raised.length > 0, charts.every(c => c.getBoundingClientRect().height > 100)].join();\
</script></body>|' "$1" > "$folder/read.html"
  local dom drawn
  dom=$(timeout 100 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --user-data-dir="$folder/profile" \
    --dump-dom "file://$folder/read.html" 2>/dev/null) || fail "chromium did not open $1"
  drawn=$(sed -n 's/.*<body[^>]*data-drawn="\([^"]*\)".*/\1/p' <<<"$dom" | head -1)
  [ "$drawn" = "2,$((2 * $2)),$((2 * $2)),$3,true,true" ] || fail "$1: drawn: '$drawn'"
}
samples() { python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["samples"]))' "$1"; }
opened "$folder/bgl.html" 4 "$(samples "$folder/bgl.json")"
opened "$folder/aries.html" 8 "$(samples "$folder/aries.json")"
opened "$folder/quadrics.html" 2 "$(samples "$folder/quadrics.json")"
