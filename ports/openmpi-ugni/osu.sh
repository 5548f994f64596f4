# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# The MPI programs of the OSU micro-benchmarks 5.3, unmodified, over uGNI, and the same binaries over the shared-memory
# transport of Debian's Open MPI, which is of the same release. Sourced by recipe.sh.

osu_commit=993f966

# Gets and builds them; fails when they cannot be had, and says in $work/osu.log why.
osu_build() {
  local source=${OSU_SOURCE:-https://github.com/forresti/osu-micro-benchmarks}
  [ -e "$work/osu/built" ] && return
  echo "building the OSU programs; details are in $work/osu.log"
  rm -rf "$work/osu" && mkdir -p "$work/osu"
  {
    GIT_TERMINAL_PROMPT=0 git clone -q "$source" "$work/osu/src" && cd "$work/osu/src" &&
      git checkout -q "$osu_commit" &&
      # A clone has files of no particular order in time: nothing is to be made again from its sources.
      find . -name '*.am' -exec touch -d yesterday {} + && touch -d yesterday configure.ac &&
      ./configure CC="$inst/bin/mpicc" CXX="$inst/bin/mpicc" --disable-openshmem && make -C mpi -j "$jobs" &&
      mkdir ../bin && find mpi -type f -name 'osu_*' -perm -u+x -exec cp {} ../bin/ \; && touch ../built
  } >"$work/osu.log" 2>&1
}

# osu_run TRANSPORT RANKS PROGRAM OPTION...
osu_run() {
  local transport=$1 ranks=$2
  shift 2
  if [ "$transport" = ugni ]; then
    on "$ranks" "$@"
  else
    env -u LD_LIBRARY_PATH timeout 300 mpirun.openmpi --allow-run-as-root --oversubscribe -x "LD_LIBRARY_PATH=$debian_mpi" \
      --mca pml ob1 --mca btl vader,self --mca mpi_yield_when_idle 1 -n "$ranks" "$@"
  fi
}

# osu_row NAME RANKS: a line of the table from what both runs printed.
osu_row() {
  awk -v name="$1" -v ranks="$2" '
    FNR == 1 { file++ }
    $1 ~ /^[0-9.]+$/ { value[file, NF > 1 ? $1 : "only"] = NF > 1 ? $2 : $1 }
    END {
      printf "| `%s` | %s |", name, ranks
      split("8 4096 65536 1048576", sizes)
      for (i = 1; i <= 4; i++) {
        size = i == 1 && ((1, "only") in value) ? "only" : sizes[i]
        printf " %s |", ((1, size) in value) ? value[1, size] " / " value[2, size] : ""
      }
      print ""
    }' "$work/osu/$1.$2.ugni" "$work/osu/$1.$2.shm"
}

osu_check() {
  local program name ranks counts options transport
  : >"$work/osu/table"
  debian_mpi=/usr/lib/$(gcc -print-multiarch)
  for program in "$work"/osu/bin/osu_*; do
    name=$(basename "$program")
    counts="2 4"
    options=(-m 65536 -i 50 -x 5)
    case "$name" in
      osu_mbw_mr | osu_latency | osu_latency_mt | osu_multi_lat | osu_bw | osu_bibw) counts=2 options=() ;;
      # A window made by MPI_Win_allocate ends it inside Open MPI, over any transport (open-mpi/ompi#9146).
      osu_cas_latency) counts=2 options=(-w create) ;;
      osu_put_* | osu_get_* | osu_acc_latency | osu_fop_latency) counts=2 options=() ;;
      osu_barrier | osu_ibarrier) options=(-i 200 -x 20) ;;
    esac
    for ranks in $counts; do
      for transport in ugni shm; do
        try "$name-$ranks-$transport" osu_run "$transport" "$ranks" "$program" "${options[@]}"
        cp "$work/$name-$ranks-$transport.log" "$work/osu/$name.$ranks.$transport"
      done
      osu_row "$name" "$ranks" >>"$work/osu/table"
    done
  done
  echo "over uGNI / over shared memory; latencies in us, bandwidths (_bw, _bibw) in MB/s"
  echo "| program | ranks | 8 B | 4 KiB | 64 KiB | 1 MiB |"
  echo "|---|---|---|---|---|---|"
  cat "$work/osu/table"
}
