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
  ! grep -q Traceback <<<"$said" || fail "$program $*: $said"
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
# A table that lacks something is refused by what it lacks, before a curve is drawn.
lacking() {  # <what is said> <program> <its table> <what sed does to it>
  sed "$4" "$there/$3" >"$folder/lacking.csv"
  ! cmp -s "$there/$3" "$folder/lacking.csv" || fail "$3: nothing was changed by $4"
  rm -f "$folder"/*.svg
  local words=(--csv "$folder/lacking.csv" --out "$folder")
  [ "$2" = curves.py ] || words+=(--orrery "$orrery" --programs "$programs")
  refused "$1" "$2" "${words[@]}"
  ! ls "$folder"/*.svg >/dev/null 2>&1 || fail "$2, $4: a curve was drawn"
}
columns=machine,layer,program,ranks,bytes
lacking "lacking.csv: no row aries,mpi,osu_latency,2,1024 ($columns)" openmpi.py openmpi.csv '/^aries,mpi,osu_latency,2,1024,/d'
lacking "lacking.csv: no row gemini,,osu_barrier,64 (machine,layer,program,ranks)" openmpi.py openmpi.csv \
  '/^gemini,,osu_barrier,64,/d'
lacking "lacking.csv: no row aries,,osu_put_latency,2 (" openmpi.py openmpi.csv '/^aries,,osu_put_latency,/d'
lacking "without value,unit: expected $columns,value,unit" openmpi.py openmpi.csv 's/,[^,]*,[^,]*$//'
lacking "lacking.csv: line 4: 'aries,,osu_latency,2,2,0.86' has no unit: expected $columns,value,unit" openmpi.py \
  openmpi.csv '4s/,us$//'
lacking "lacking.csv: line 4: 'more' is more than expected: $columns,value,unit" openmpi.py openmpi.csv '4s/$/,more/'
lacking "lacking.csv: line 4: value is '': expected a number of" openmpi.py openmpi.csv '4s/,[^,]*,us$/,,us/'
lacking "lacking.csv: line 4: value is 'nan': expected a number of" openmpi.py openmpi.csv '4s/,[^,]*,us$/,nan,us/'
lacking "lacking.csv: line 4: value is '-1': expected a number of" openmpi.py openmpi.csv '4s/,[^,]*,us$/,-1,us/'
lacking "lacking.csv: line 4: ranks is 'two': expected a whole number of 1 or more" openmpi.py openmpi.csv '4s/,2,/,two,/'
lacking "lacking.csv: line 4: bytes is '-2': expected a whole number of 0 or more" openmpi.py openmpi.csv '4s/,2,2,/,2,-2,/'
lacking "lacking.csv: line 5: aries,,osu_latency,2,2 is there already" openmpi.py openmpi.csv '4p'
lacking "lacking.csv cannot be read: 'utf-8' codec can't decode" openmpi.py openmpi.csv '$s/us/\xff/'
lacking 'lacking.csv: no row "latency, us","CCI, unreliable (UU)",4096 (figure,curve,bytes)' seastar.py seastar.csv \
  '/^"latency, us","CCI, unreliable (UU)",4096,/d'
lacking "lacking.csv: line 9: value is '0': expected a number of 0.001 or more" seastar.py seastar.csv '9s/,[^,]*$/,0/'
lacking "' has no value: expected figure,curve,bytes,value" seastar.py seastar.csv '9s/,[^,]*$//'
lacking "lacking.csv: no row osu_put_bw,by the block engine,8192 (program,way,bytes)" curves.py osu-aries.csv \
  '/^osu_put_bw,by the block engine,8192,/d'
lacking "lacking.csv: no row osu_put_latency,by FMA (program,way)" curves.py osu-aries.csv '/^osu_put_latency,by FMA/d'
lacking "' has no unit: expected program,way,bytes,value,unit" curves.py osu-aries.csv '9s/,[^,]*$//'
# So are the published figures, which lie beside the machines.
mkdir -p "$folder/tree/bench" "$folder/tree/machines"
cp -r "$root/bench/osu" "$folder/tree/bench"
cp "$root"/machines/* "$folder/tree/machines"
sed -i '/^HA105,/d' "$folder/tree/machines/measurements.csv" "$folder/tree/machines/reference.csv"
root=$folder/tree
refused "machines/measurements.csv and reference.csv: no row HA105 (id)" openmpi.py --csv "$there/openmpi.csv" \
  --out "$folder" --orrery "$orrery" --programs "$programs"
sed -i '1s/printed/said/' "$root/machines/reference.csv"
refused "reference.csv: no column printed in its first line" openmpi.py --csv "$there/openmpi.csv" --out "$folder" \
  --orrery "$orrery" --programs "$programs"
