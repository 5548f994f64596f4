#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# ports/run.sh takes what a build left for built when the build had come to its end, and at no other time. The port is
# a program of this test's own, in a tree of its own.
# usage: port_build_test.sh <root>
set -euo pipefail
root=$1
folder=$(mktemp -d)
tree=$folder/tree
running=
# A job of its own has a process group of its own: what it started ends with it.
trap '[ -z "$running" ] || kill -KILL -- -"$running" 2>/dev/null || true; rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

mkdir -p "$tree/ports/package" "$folder/prefix"
cp "$root/ports/run.sh" "$tree/ports"
# Its build installs a program, tells how often it was called, and does what $folder/then says: wait, fail or nothing.
cat >"$tree/ports/package/recipe.sh" <<'E2'
port_accepts() { :; }
port_build() {
  mkdir -p "$inst/bin"
  printf '#!/bin/sh\necho hello\n' >"$inst/bin/program"
  chmod +x "$inst/bin/program"
  echo built >>"$FOLDER/builds"
  . "$FOLDER/then"
}
port_check() { try program "$inst/bin/program"; }
E2
export FOLDER=$folder ORRERY_PREFIX=$folder/prefix
port() { "$tree/ports/run.sh" package "$@"; }
builds() { wc -l <"$folder/builds"; }
inst=$tree/build/ports/package/inst

# Killed between the last step of the installation and the mark. The reader of the pipe is this test: the build stands
# where it writes, whatever the machine's speed.
mkfifo "$folder/installed"
# shellcheck disable=SC2016 # expanded where it is read
echo 'echo yes >"$FOLDER/installed"; sleep 600' >"$folder/then"
set -m
port all >"$folder/said" 2>&1 &
running=$!
set +m
read -r _ <"$folder/installed"
kill -KILL -- -"$running"
wait "$running" && fail "killed, and ended with 0"
running=
[ -x "$inst/bin/program" ] || fail "the build was killed before the installation was whole"
[ "$(builds)" = 1 ] || fail "$(builds) builds"
! said=$(port check 2>&1) || fail "what a killed build left was checked: $said"
grep -qF "package is not built in $inst: expected 'ports/run.sh package build' before" <<<"$said" || fail "$said"

# A build that fails after it has installed leaves no mark either.
echo 'return 3' >"$folder/then"
! said=$(port all 2>&1) || fail "a build failed, and run.sh ended with 0: $said"
[ "$(builds)" = 2 ] || fail "what a killed build left was taken for built: $said"
! grep -q passed <<<"$said" || fail "a build failed, and its program was checked: $said"

echo ':' >"$folder/then"
said=$(port all 2>&1) || fail "$said"
[ "$(builds)" = 3 ] || fail "what a failed build left was taken for built: $said"
grep -qxF "1 passed, 0 failed" <<<"$said" || fail "$said"

# Built to its end, it is not built again.
for step in all build check; do
  said=$(port $step 2>&1) || fail "$step: $said"
  [ "$(builds)" = 3 ] || fail "$step built again what was there: $said"
done
