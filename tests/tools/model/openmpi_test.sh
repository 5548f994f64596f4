#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# What OSU's programs measured over Open MPI is beside the model as it is now: the curves of docs/figures are of that
# table to the byte, docs/timing.md has the tables that it gives, and what is held holds.
set -euo pipefail
root=$1 orrery=$2 programs=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
figures() { python3 "$root/bench/osu/openmpi.py" --orrery "$orrery" --programs "$programs" --out "$folder" "$@"; }

said=$(figures --csv "$root/docs/figures/openmpi.csv") || fail "$said"
for machine in aries gemini; do
  for curve in latency bandwidth allreduce; do
    name=openmpi-$machine-$curve.svg
    cmp "$root/docs/figures/$name" "$folder/$name" || fail "$name is not of its table"
  done
done
grep '^|' <<<"$said" > "$folder/rows"
[ "$(wc -l < "$folder/rows")" -gt 40 ] || fail "no tables: $said"
while IFS= read -r row; do
  grep -qxF -- "$row" "$root/docs/timing.md" || fail "docs/timing.md has no line: $row"
done < "$folder/rows"
# A figure far from the model ends in 1, and so does a miss that is told and is none any more.
changed() {  # <what> <row with its value> <another value>
  sed "s/^\($2,\)[0-9.]*,/\1$3,/" "$root/docs/figures/openmpi.csv" > "$folder/changed.csv"
  ! cmp -s "$root/docs/figures/openmpi.csv" "$folder/changed.csv" || fail "no row $2 to change"
  ! figures --csv "$folder/changed.csv" > /dev/null || fail "$1"
}
changed "2.5 us for a put of 8 B was taken for the model's" aries,,osu_put_latency,2,8 2.5
changed "0.82 us for 8 B is no miss, and was told as one" aries,,osu_latency,2,8 0.82
! figures --osu "$folder" --via true 2>/dev/null || fail "a program that is not there, and no error"
! figures 2>/dev/null || fail "nothing to run or to draw, and no error"
# What is not there is refused by its name, in a line.
refused() {  # <what is said> <program> <arguments...>
  local what=$1 program=$2; shift 2
  ! said=$(python3 "$root/bench/osu/$program" "$@" 2>&1) || fail "$program $*: not refused"
  grep -qF -- "$what" <<<"$said" || fail "$program $*: $said"
}
there=$root/docs/figures
refused "--csv $folder/none.csv cannot be read" openmpi.py --csv "$folder/none.csv" --out "$folder" --orrery "$orrery"
refused "expected machine,layer,program,ranks," openmpi.py --csv "$there/seastar.csv" --out "$folder" --orrery "$orrery"
refused "--orrery $folder is not a program" openmpi.py --csv "$there/openmpi.csv" --out "$folder" --orrery "$folder"
refused "--out $folder/none is not a folder" openmpi.py --csv "$there/openmpi.csv" --orrery "$orrery" \
  --out "$folder/none"
refused "--csv $folder/none.csv cannot be read" curves.py --csv "$folder/none.csv" --out "$folder"
refused "expected program,way,bytes,value,unit" curves.py --csv "$there/openmpi.csv" --out "$folder"
refused "--out $folder/none is not a folder" seastar.py --csv "$there/seastar.csv" --orrery "$orrery" \
  --out "$folder/none"
