# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# Open MPI of Debian's source package, as released, with the byte transfer layer that it has for uGNI. Sourced by
# ports/run.sh.

# The domain that all ranks sign on to: mpirun is no launcher that knows about domains.
port_mpirun=(timeout 300 "$inst/bin/mpirun" --allow-run-as-root --oversubscribe
  -x PMI_GNI_PTAG=17 -x PMI_GNI_COOKIE=1128071168 -x LD_LIBRARY_PATH
  --mca pml ob1 --mca btl ugni,self --mca mpi_yield_when_idle 1)

# port_accepts OPTION...: whether port_check takes them, as far as that can be told without the command orrery while
# $orrery is empty
port_accepts() {
  # Where Python is not there yet, it is installed with what builds Orrery.
  [ -n "$orrery" ] || command -v python3 >/dev/null || return 0
  [ $# -eq 0 ] || python3 ports/openmpi-ugni/machine_check.py --only-options --orrery "$orrery" "$@"
}

port_build() {
  install_packages build-essential pkg-config flex zlib1g-dev
  fetch_source openmpi
  mkdir -p "$work/src"
  tar -xf "$work"/openmpi_4.*.orig.tar.xz -C "$work/src" --strip-components=1
  echo "building Open MPI; details are in $work/build.log"
  # Without what needs other hardware or other launchers, and without the other transports between processes:
  # a message that uGNI does not carry is not carried.
  local left_out=btl-tcp,btl-usnic,btl-vader,btl-sm,btl-smcuda,coll-ml,coll-sm,fcoll,fbtl,fs,io,crs,snapc,vprotocol
  (
    cd "$work/src" || exit
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
    ./configure --prefix="$inst" --with-ugni --disable-mpi-fortran --disable-oshmem --without-ucx --without-verbs \
      --without-libfabric --without-psm2 --without-slurm --with-pmix=internal --with-libevent=internal \
      --with-hwloc=internal --disable-io-romio --disable-dependency-tracking --enable-mca-no-build="$left_out" &&
      make -j "$jobs" && make install
  ) >"$work/build.log" 2>&1 || { tail -n 30 "$work/build.log"; return 1; }
}

# on RANKS COMMAND...: over uGNI and nothing else
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
  (cd "$place" && on "$ranks" "$(command -v hpcc)") && grep -q '^Success=1' "$place/hpccoutf.txt"
}

# port_check [--machine MACHINES OPTION...]: the programs in raw time, or in a machine's by machine_check.py
port_check() {
  install_packages hpcc
  export LD_LIBRARY_PATH=$inst/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  local examples=$work/src/examples program ranks
  for program in hello_c ring_c connectivity_c; do
    "$inst/bin/mpicc" -o "$work/$program" "$examples/$program.c"
  done
  "$inst/bin/mpicc" -O2 -o "$work/rma_check" ports/openmpi-ugni/rma_check.c
  if [ $# -gt 0 ]; then
    exec python3 ports/openmpi-ugni/machine_check.py --orrery "$orrery" --work "$work" \
      --via "$inst/bin/mpirun --allow-run-as-root" --hpcc "$(command -v hpcc)" "$@"
  fi
  for ranks in 2 4; do
    for program in hello_c ring_c connectivity_c; do try "$program-$ranks" on "$ranks" "$work/$program"; done
    try "rma_check-$ranks" on "$ranks" --mca osc rdma "$work/rma_check"
    try "hpcc-$ranks" hpcc_passes "$ranks" 2
  done
}
