#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# A stranger's view of the installed package.
# usage: package.sh install <build folder> <prefix> <cc> <flags>
#                                                      installs, then moves the prefix: what follows proves
#                                                      that nothing depends on where it was
#        package.sh pkg-config <prefix> <cc> <flags>   a C client by pkg-config, libraries before sources
#        package.sh cmake <prefix> <cc> <flags>        the same by find_package
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
step=$1
shift
# Only what the package itself says may find the libraries.
unset LD_LIBRARY_PATH LIBRARY_PATH CPATH CMAKE_PREFIX_PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# expect <line> <program>: runs it away from the tree and compares what it prints.
expect() {
  local printed
  printed=$(cd "$scratch" && "$2") || { echo "$2 ended with $?: $printed"; exit 1; }
  [ "$printed" = "$1" ] || { echo "$2 printed '$printed', not '$1'"; exit 1; }
}

# uses <program> <library>: the program loads that library from the prefix and from nowhere else.
uses() {
  local at
  at=$(ldd "$1" | awk -v name="$2" '$1 == name {print $3}')
  [ -n "$at" ] || { echo "$1 does not load $2"; exit 1; }
  [ "$(realpath "$at")" = "$(realpath "$prefix/$(cd "$prefix" && ls -d lib*/orrery lib/*/orrery 2>/dev/null | head -1)/$2")" ] ||
    { echo "$1 loads $2 from $at"; exit 1; }
}

case "$step" in
  install)
    rm -rf "$2" "$2.first"
    cmake --install "$1" --prefix "$2.first" >/dev/null
    # A plain sh finds the prefix that was installed to, whatever the tree was configured for.
    env_sh=$(find "$2.first" -name env.sh)
    printed=$(env -u orrery_prefix dash -c '. "$1"; echo "$CRAY_UDREG_INCLUDE_OPTS"' dash "$env_sh")
    [ -f "${printed#-I}/udreg_pub.h" ] || { echo "env.sh in dash gives '$printed'"; exit 1; }
    for file in share/orrery/machines/reference.csv share/doc/orrery/docs/running.md share/doc/orrery/examples/gni/put.c; do
      [ -f "$2.first/$file" ] || { echo "$file is not installed"; exit 1; }
    done
    mv "$2.first" "$2"
    # As a packager does it: below DESTDIR, where everything lies as it will below the prefix.
    rm -rf "$2.dest"
    DESTDIR="$2.dest" cmake --install "$1" --prefix /usr >/dev/null
    [ -x "$2.dest/usr/bin/orrery" ] || { echo "nothing is installed below DESTDIR"; exit 1; }
    if grep -rlI --exclude-dir=doc "$2.dest" "$2.dest"; then
      echo "the files above name DESTDIR"
      exit 1
    fi
    "$2.dest/usr/bin/orrery" run -n 1 true
    # The next package is built against what is staged there.
    prefix=$2.dest/usr cc=$3 flags=${4:-}
    # shellcheck disable=SC2086
    WRAPPED_CC=$cc "$prefix/share/orrery/compilers/cc" $flags "$here/downstream/client.c" -o "$scratch/client_wrapped"
    # shellcheck disable=SC2046,SC2086
    "$cc" $flags $(PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name cray-ugni.pc)") pkg-config --cflags --libs \
      cray-pmi cray-ugni) "$here/downstream/client.c" -o "$scratch/client_staged"
    for staged in client_wrapped client_staged; do
      expect "rank 0 of 1" "$scratch/$staged"
      uses "$scratch/$staged" libugni.so.0
      uses "$scratch/$staged" liborrery.so.0
    done
    rm -rf "$prefix" "$2.dest"
    ;;
  pkg-config)
    prefix=$1 cc=$2 flags=${3:-}
    configs=$(dirname "$(find "$prefix" -name cray-ugni.pc)")
    export PKG_CONFIG_PATH=$configs
    # The way Cray's users write it; both orders, because pkg-config merges equal words.
    for packages in "cray-pmi cray-ugni" "cray-ugni cray-pmi"; do
      # shellcheck disable=SC2046,SC2086
      "$cc" $flags $(pkg-config --cflags --libs $packages) "$here/downstream/client.c" -o "$scratch/client"
      expect "rank 0 of 1" "$scratch/client"
      uses "$scratch/client" libugni.so.0
      uses "$scratch/client" libpmi.so.0
      uses "$scratch/client" liborrery.so.0
    done
    # Threads may run and sleep in them when a program closes its plug-in.
    for library in "$prefix"/lib*/orrery/lib*.so.[0-9] "$prefix"/lib/*/orrery/lib*.so.[0-9]; do
      [ ! -e "$library" ] || readelf -d "$library" | grep -q NODELETE || { echo "dlclose would unmap $library"; exit 1; }
    done
    # libtool puts bare libraries in front of all words that begin with -Wl, and many linkers are told --as-needed: a
    # client's library names liborrery.so even so.
    for package in cray-pmi cray-ugni "cray-ugni cray-pmi" cray-dmapp shmem portals4 portals3 cci; do
      words=$(pkg-config --libs $package)
      # shellcheck disable=SC2046,SC2086
      "$cc" $flags -shared -fPIC -Wl,--as-needed $(pkg-config --cflags cray-pmi cray-ugni) "$here/downstream/client.c" \
        $(printf '%s\n' $words | grep '^-[lL]') $(printf '%s\n' $words | grep '^-Wl') -o "$scratch/libclient.so"
      readelf -d "$scratch/libclient.so" | grep -q 'NEEDED.*liborrery.so.0' ||
        { echo "a library that libtool links with '$package' does not name liborrery.so.0"; exit 1; }
    done
    # The compiler wrappers: no option of ours, compiled and linked apart and at once, by a link as well.
    compilers=$prefix/share/orrery/compilers
    printf '#include <pmi.h>\nint main() { return PMI_SUCCESS; }\n' >"$scratch/x.cc"
    printf '      program x\n      end program\n' >"$scratch/x.f"
    ln -s "$compilers/cc" "$scratch/cc"
    export WRAPPED_CC=$cc WRAPPED_CXX=g++ WRAPPED_FTN=gfortran
    case $cc in *clang*) WRAPPED_CXX=clang++ ;; esac
    if [ "$cc" = "${cc#*clang}" ] || [ -z "$flags" ]; then
      # shellcheck disable=SC2086
      (PATH=$compilers:$PATH
       cc --version >/dev/null
       cc $flags "$here/downstream/client.c" -o "$scratch/client_wrapped"
       cc $flags -c "$here/downstream/client.c" -o "$scratch/client.o"
       "$scratch/cc" $flags "$scratch/client.o" -o "$scratch/client_apart"
       CC $flags "$scratch/x.cc" -o "$scratch/client_cxx")
      for wrapped in client_wrapped client_apart; do
        expect "rank 0 of 1" "$scratch/$wrapped"
        uses "$scratch/$wrapped" libugni.so.0
        uses "$scratch/$wrapped" liborrery.so.0
        if ldd "$scratch/$wrapped" | grep -q -e libudreg -e liborrery_log; then echo "$wrapped loads what it does not call"; exit 1; fi
      done
      "$scratch/client_cxx"
      # shellcheck disable=SC2086
      if command -v gfortran >/dev/null; then (cd "$scratch" && "$compilers/ftn" $flags x.f -o client_f && ./client_f); fi
    fi
    # The README's first program, from the examples that are installed.
    # shellcheck disable=SC2046,SC2086
    "$cc" $flags "$prefix/share/doc/orrery/examples/gni/put.c" $(pkg-config --cflags --libs cray-pmi cray-ugni) \
      -o "$scratch/put"
    "$prefix/bin/orrery" run -n 2 "$scratch/put" >"$scratch/printed" || { cat "$scratch/printed"; exit 1; }
    # Scripts that read variables instead, in a shell that knows where the file is and in one that does not.
    env_sh=$(find "$prefix" -name env.sh)
    # shellcheck disable=SC1090,SC2086
    (unset PKG_CONFIG_PATH; . "$env_sh"
     "$cc" $flags $CRAY_PMI_INCLUDE_OPTS $CRAY_GNI_HEADERS_INCLUDE_OPTS $CRAY_UGNI_POST_LINK_OPTS \
       $CRAY_PMI_POST_LINK_OPTS "$here/downstream/client.c" -o "$scratch/client_env"
     pkg-config --exists cray-ugni cray-pmi && command -v orrery >/dev/null)
    expect "rank 0 of 1" "$scratch/client_env"
    uses "$scratch/client_env" libugni.so.0
    printed=$(sh -c 'orrery_prefix=$1; . "$2"; echo "$CRAY_UDREG_INCLUDE_OPTS"' sh "$prefix" "$env_sh")
    [ -f "${printed#-I}/udreg_pub.h" ] || { echo "env.sh in sh gives '$printed'"; exit 1; }
    # Scripts that are given a product's folder.
    products=$prefix/share/orrery/products
    # shellcheck disable=SC2086
    "$cc" $flags -I"$products/pmi/include" -I"$products/ugni/include" "$here/downstream/client.c" -L"$products/ugni/lib64" \
      -L"$products/pmi/lib" -Wl,-rpath,"$products/pmi/lib" -Wl,--no-as-needed -lugni -lpmi -lorrery -o "$scratch/client_product"
    expect "rank 0 of 1" "$scratch/client_product"
    uses "$scratch/client_product" libpmi.so.0
    printed=$(sh -c 'orrery_prefix=$1; . "$2"; echo "$CRAY_PMI_PREFIX"' sh "$prefix" "$env_sh")
    [ -f "$printed/include/pmi_cray.h" ] || { echo "CRAY_PMI_PREFIX is '$printed'"; exit 1; }
    # Where nothing says to where the prefix was moved, one line says so and nothing is set.
    printed=$(env -u orrery_prefix dash -c '. "$1"; echo "set: $CRAY_UDREG_INCLUDE_OPTS"' dash "$env_sh" 2>"$scratch/said")
    [ "$printed" = "set: " ] && [ "$(wc -l <"$scratch/said")" = 1 ] && grep -q "set orrery_prefix" "$scratch/said" ||
      { echo "env.sh of a moved prefix gives '$printed' and says: $(cat "$scratch/said")"; exit 1; }
    # Every package that clients ask for by name is there and links.
    echo "int main(void) { return 0; }" >"$scratch/empty.c"
    for package in cray-alpslli cray-alpsutil cray-rca cray-udreg cray-wlm_detect cray-xpmem cray-dmapp shmem cray-shmem \
      portals4 portals3 cci; do
      library=${package#cray-}
      case $package in portals4) library=portals.so.0 ;; cci) library=cci.so.2 ;; *) library=$library.so.0 ;; esac
      # shellcheck disable=SC2046,SC2086
      "$cc" $flags $(pkg-config --cflags --libs "$package") "$scratch/empty.c" -o "$scratch/empty"
      "$scratch/empty"
      uses "$scratch/empty" "lib$library"
    done
    # A server and its client, which no launcher starts; the library loads from the prefix.
    # shellcheck disable=SC2046,SC2086
    "$cc" $flags $(pkg-config --cflags --libs cci) "$prefix/share/doc/orrery/examples/cci/echo.c" -o "$scratch/echo"
    uses "$scratch/echo" libcci.so.2
    uses "$scratch/echo" liborrery.so.0
    # The interfaces that env.sh names besides Cray's own: options and folder of each.
    # shellcheck disable=SC1090,SC2086
    (unset PKG_CONFIG_PATH; . "$env_sh"
     printf '#include <cci.h>\n#include <shmem.h>\n#include <portals4.h>\nint main(void) { return 0; }\n' >"$scratch/three.c"
     "$cc" $flags "$scratch/three.c" $CRAY_CCI_INCLUDE_OPTS $CRAY_SHMEM_INCLUDE_OPTS $CRAY_PORTALS4_INCLUDE_OPTS \
       $CRAY_CCI_POST_LINK_OPTS $CRAY_SHMEM_POST_LINK_OPTS $CRAY_PORTALS4_POST_LINK_OPTS -o "$scratch/three"
     [ -f "$CRAY_CCI_PREFIX/include/cci.h" ] && [ -f "$CRAY_CCI_PREFIX/lib/libcci.so.2" ] &&
       [ -f "$CRAY_SHMEM_PREFIX/include/shmem.h" ] && [ -f "$CRAY_PORTALS4_PREFIX/include/portals4.h" ])
    for library in libcci.so.2 libshmem.so.0 libportals.so.0 liborrery.so.0; do uses "$scratch/three" $library; done
    if pkg-config --cflags cray-ugni | grep -q CRAY_CONFIG_GHAL_ARIES; then
      echo "cray-ugni defines CRAY_CONFIG_GHAL_ARIES, which clients take for the real machine"
      exit 1
    fi
    libdir=$(pkg-config --variable=libdir cray-ugni)
    # shellcheck disable=SC2046,SC2086
    "$cc" $flags $(pkg-config --cflags cray-pmi cray-ugni) "$here/downstream/client.c" \
      "$libdir/libugni.a" "$libdir/libpmi.a" -L"$libdir" -Wl,-rpath,"$libdir" -lorrery -lstdc++ \
      -o "$scratch/client_static"
    expect "rank 0 of 1" "$scratch/client_static"
    uses "$scratch/client_static" liborrery.so.0
    ;;
  cmake)
    prefix=$1 cc=$2 flags=${3:-}
    cmake -S "$here/downstream" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
      -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_BUILD_TYPE=Release >"$scratch/log" 2>&1 ||
      { cat "$scratch/log"; exit 1; }
    cmake --build "$scratch/build" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
    expect "rank 0 of 1" "$scratch/build/client"
    expect "rank 0 of 1" "$scratch/build/client_static"
    uses "$scratch/build/client" libugni.so.0
    for program in "$scratch"/build/uses_*; do
      "$program"
      uses "$program" liborrery.so.0
    done
    uses "$scratch/build/uses_cci" libcci.so.2
    # A component that is not there is refused by name.
    if cmake -S "$here/downstream" -B "$scratch/none" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
      -DCOMPONENTS="ugni;nosuchapi" >"$scratch/log" 2>&1; then
      echo "find_package(Orrery COMPONENTS nosuchapi) succeeded"
      exit 1
    fi
    grep -q "component nosuchapi is not installed" "$scratch/log" || { cat "$scratch/log"; exit 1; }
    ;;
  *)
    echo "package.sh: '$step' is not install, pkg-config or cmake" >&2
    exit 2
    ;;
esac
