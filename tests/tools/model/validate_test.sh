#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
set -euo pipefail
. "$(dirname "$0")/check.sh"

says ' 0 failed' validate
says 'fitted' validate gemini
says 'of the papers, predicted' validate --all
says '40 rows: of ' validate --all
says 'of 1 fitted 1' validate --all gemini
# A machine file with one constant off fails, and says where: exit code 1.
"$orrery" machines --print gemini | sed 's/"105 ns"/"150 ns"/' > "$folder/mine.toml"
code=0
out=$("$orrery" validate "$folder/mine.toml") || code=$?
[ "$code" = 1 ] || fail "a wrong hop latency gave exit code $code: $out"
grep -q 'GE048.*FAILS' <<<"$out" || fail "GE048 does not fail: $out"
python3 - "$orrery" <<'PY'
import json, subprocess, sys
v = json.loads(subprocess.check_output([sys.argv[1], "validate", "--json"]))
judged = [r for r in v["rows"] if r["status"] != "conflict"]
assert v["failed"] == 0 and v["fitted"] + v["predicted"] == len(judged), v
assert v["fitted"] > 10 and v["predicted"] > 50, (v["fitted"], v["predicted"])
assert {r["machine"] for r in judged} == {"aries", "gemini", "seastar", "bluegene-l", "asci-q"}
PY
refuses "no row of reference.csv is about machine 'ideal'" validate ideal
refuses "cannot be read" validate --reference "$folder/none.csv"
refuses "Is a directory" validate --reference "$folder"
echo 'id,machine' > "$folder/bad.csv"; echo 'X,y' >> "$folder/bad.csv"
refuses "expected 10 columns" validate --reference "$folder/bad.csv"
# A measure that there is not is named, with those that there are; its row fails.
"$orrery" machines --print gemini > "$folder/gemini.toml"
printf '%s\n' 'id,machine,place,what,printed,unit,compare,tolerance,measure,constants' \
  'X1,gemini,here,what,1,us,percent,5,"latency(fma_putt, 8, 1)",' > "$folder/unknown.csv"
code=0
out=$("$orrery" validate --reference "$folder/unknown.csv" "$folder/gemini.toml" 2>&1 >/dev/null) || code=$?
[ "$code" = 1 ] || fail "an unknown measure gave exit code $code: $out"
grep -qF "row X1: measure 'latency(fma_putt, 8, 1)' is none" <<<"$out" || fail "the measure is not named: $out"
grep -qF 'latency(op, bytes, hops)' <<<"$out" || fail "the measures are not listed: $out"
