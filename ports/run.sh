#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# Builds a program that others wrote from its Debian source package, unmodified, against Orrery, and runs it.
# usage: ports/run.sh PORT [build|check|all] [OPTION...]    all (default): build what is not built yet, then check
#   OPTION...      the port's own, for its checks
#   ORRERY_PREFIX  where Orrery is installed; without it this tree is built and installed into build/ports/prefix
#   PORT_PREFIX    where the program goes (build/ports/PORT/inst)
#   PORT_JOBS      parallel compilations (the number of processors)
# Everything else that is made lies in build/ports/PORT. Ends with "N passed, N failed" and with 0 when none failed.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$PWD

ports=()
for recipe in ports/*/recipe.sh; do ports+=("$(basename "$(dirname "$recipe")")"); done
port=${1:-}
step=${2:-all}
if [ $# -gt 2 ]; then shift 2; else set --; fi
if [ -z "$port" ] || [ ! -e "ports/$port/recipe.sh" ]; then
  echo "run.sh: '$port' is not a port; there is: ${ports[*]}" >&2
  exit 2
fi
case "$step" in
  build | check | all) ;;
  *) echo "run.sh: '$step' is not one of build, check, all" >&2; exit 2 ;;
esac

work=$tree/build/ports/$port
jobs=${PORT_JOBS:-$(nproc)}
inst=${PORT_PREFIX:-$work/inst}
prefix=${ORRERY_PREFIX:-$tree/build/ports/prefix}
passed=0
failed=0

# install_packages PACKAGE...: those that are missing
install_packages() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ]; then
    echo "run.sh: not root; ask an administrator for: ${missing[*]}" >&2
    return 1
  fi
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null
}

# fetch_source PACKAGE: its source archives into $work, checked by apt, without touching the system's sources
fetch_source() {
  local apt=$work/apt
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  echo "deb-src http://deb.debian.org/debian bookworm main" >"$apt/sources.list"
  local options=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/nonexistent
    -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
  apt-get -qq "${options[@]}" update
  (cd "$work" && apt-get -qq "${options[@]}" source --download-only "$1")
}

# try NAME COMMAND...: one check, a program or a function; its output goes to $work/NAME.log
try() {
  local name=$1
  shift
  if "$@" >"$work/$name.log" 2>&1; then
    echo "ok      $name"
    passed=$((passed + 1))
  else
    echo "FAILED  $name ($work/$name.log)"
    tail -n 15 "$work/$name.log" | sed 's/^/        /'
    failed=$((failed + 1))
  fi
}

if [ "$step" = check ] && [ ! -e "$inst/.complete" ]; then
  echo "run.sh: $port is not built in $inst: expected 'ports/run.sh $port build' before, or its PORT_PREFIX" >&2
  exit 2
fi
# shellcheck source=/dev/null
. "ports/$port/recipe.sh"
orrery=$prefix/bin/orrery
if [ -z "${ORRERY_PREFIX:-}" ] && [ "$step" != check ]; then orrery=; fi  # it is built first
port_accepts "$@" || exit 2  # before anything is built, and before a program runs
mkdir -p "$work"
if [ -z "$orrery" ]; then
  tools/setup.sh build
  echo "building Orrery; details are in $work/orrery.log"
  # In a build tree of its own: a port needs what is installed, not the tests.
  { cmake --preset release -B build/ports/orrery -DORRERY_WERROR=OFF -DORRERY_TESTS=OFF -DORRERY_EXAMPLES=OFF \
      -DORRERY_BENCH=OFF && cmake --build build/ports/orrery -j "$jobs" &&
    cmake --install build/ports/orrery --prefix "$prefix"; } >"$work/orrery.log" 2>&1 ||
    { tail -n 30 "$work/orrery.log"; exit 1; }
  orrery=$prefix/bin/orrery
  port_accepts "$@" || exit 2  # it says more of a machine's file than its name does
fi

# Not behind ||, where the shell would go on after each step that fails.
complete=$inst/.complete  # a build that was broken off is not taken for one
if [ "$step" != check ]; then
  if [ -e "$complete" ]; then
    echo "$port is in $inst already"
  else
    port_build
    touch "$complete"
  fi
fi
[ "$step" = build ] && exit 0
port_check "$@"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
