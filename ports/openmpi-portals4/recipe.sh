# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# Open MPI of Debian's source package, as released, with what it has for Portals 4: the matching transport layer
# (mtl), one-sided operations (osc) and collectives (coll). Sourced by ports/run.sh.

port_mpirun=(timeout 300 "$inst/bin/mpirun" --allow-run-as-root --oversubscribe -x LD_LIBRARY_PATH
  --mca pml cm --mca mtl portals4 --mca mpi_yield_when_idle 1)

port_accepts() {
  [ $# -eq 0 ] || { echo "run.sh: '$1': this port's check has no options" >&2; return 1; }
}

port_build() {
  install_packages build-essential pkg-config flex zlib1g-dev
  fetch_source openmpi
  mkdir -p "$work/src"
  tar -xf "$work"/openmpi_4.*.orig.tar.xz -C "$work/src" --strip-components=1
  # Its configure wants one directory with the headers and one with the libraries.
  mkdir -p "$work/portals4"
  ln -sfn "$prefix/include/orrery/portals" "$work/portals4/include"
  ln -sfn "$(dirname "$(find "$prefix/lib" -name libportals.so | head -n 1)")" "$work/portals4/lib"
  echo "building Open MPI; details are in $work/build.log"
  # Without what needs other hardware or other launchers, and without the other transports between processes.
  local left_out=btl-tcp,btl-usnic,btl-vader,btl-sm,btl-smcuda,coll-ml,coll-sm,fcoll,fbtl,fs,io,crs,snapc,vprotocol
  (
    cd "$work/src" || exit
    export LD_LIBRARY_PATH=$work/portals4/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    ./configure --prefix="$inst" --with-portals4="$work/portals4" --disable-mpi-fortran --disable-oshmem \
      --without-ucx --without-verbs --without-libfabric --without-psm2 --without-slurm --with-pmix=internal \
      --with-libevent=internal --with-hwloc=internal --disable-io-romio --disable-dependency-tracking \
      --enable-mca-no-build="$left_out" &&
      make -j "$jobs" && make install
  ) >"$work/build.log" 2>&1 || { tail -n 30 "$work/build.log"; return 1; }
}

# on RANKS COMMAND...: over Portals 4 and nothing else
on() {
  local ranks=$1
  shift
  "${port_mpirun[@]}" -n "$ranks" "$@"
}

# hpcc_passes RANKS COLUMNS: the benchmark's own verdict, on its example input made small.
hpcc_passes() {
  local ranks=$1 place=$work/hpcc.$1
  rm -rf "$place" && mkdir -p "$place"
  sed -e "s/^[0-9]* *Ns$/400 Ns/" -e "s/^[0-9]* *NBs$/40 NBs/" -e "s/^[0-9]* *Ps$/$((ranks / $2)) Ps/" \
    -e "s/^[0-9]* *Qs$/$2 Qs/" /usr/share/doc/hpcc/examples/_hpccinf.txt >"$place/hpccinf.txt"
  (cd "$place" && on "$ranks" --mca coll ^portals4 "$(command -v hpcc)") && grep -q '^Success=1' "$place/hpccoutf.txt"
}

port_check() {
  install_packages hpcc
  export LD_LIBRARY_PATH=$inst/lib:$work/portals4/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  local examples=$work/src/examples program ranks
  for program in hello_c ring_c connectivity_c; do
    "$inst/bin/mpicc" -o "$work/$program" "$examples/$program.c"
  done
  "$inst/bin/mpicc" -O2 -o "$work/rma_check" ports/openmpi-ugni/rma_check.c
  "$inst/bin/mpicc" -O2 -o "$work/coll_check" ports/openmpi-portals4/coll_check.c
  for ranks in 2 4; do
    for program in hello_c ring_c connectivity_c; do try "$program-$ranks" on "$ranks" "$work/$program"; done
    try "rma_check-$ranks" on "$ranks" --mca osc portals4 "$work/rma_check"
    try "coll_check-$ranks" on "$ranks" --mca coll_portals4_priority 100 "$work/coll_check"
    try "hpcc-$ranks" hpcc_passes "$ranks" 2
  done
}
