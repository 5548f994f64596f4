#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# Installs what is missing, builds, and runs the tests.
# usage: tools/test.sh [suite...]        release (default): every test, optimised
#                                        asan-ubsan: the tests of programs under Address- and UBSanitizer
#                                        tsan: under ThreadSanitizer the tests that run in one process, and some
#                                        jobs of which it watches each process
#                                        clang: every test, compiled by clang
#                                        fuzz: every fuzz target, ORRERY_FUZZ_SECONDS (60) each
# Ends with "N passed, N failed" over all suites and with 0 when none failed.
set -uo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh test || exit 1

export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
passed=0
failed=0
skipped=0
summary=()

# count <suite> <passed> <failed> <skipped>
count() {
  passed=$((passed + $2))
  failed=$((failed + $3))
  skipped=$((skipped + $4))
  summary+=("$(printf '%-10s %4d passed, %d failed, %d skipped' "$@")")
}

# targets <suite>: what of the tree it needs, as options of cmake --build; empty: all.
targets() {
  case "$1" in
    tsan) echo "--target inprocess_tests" ;;
    fuzz) echo "--target fuzz_targets" ;;
  esac
}

# compile <suite>: configures and builds, quietly.
compile() {
  # shellcheck disable=SC2046 # several words
  { cmake --preset "$1" && cmake --build --preset "$1" $(targets "$1"); } >"build/$1.log" 2>&1
}

# build_ahead <suite>: begins to, at the lowest priority: the tests wait for much of their time, and what of the
# machine they leave builds the next suite. In a process group of its own, so that it ends when this script does.
ahead=
build_ahead() {
  set -m
  (renice -n 19 $BASHPID >/dev/null 2>&1; compile "$1") &
  set +m
  ahead=$!
}
trap '[ -z "$ahead" ] || kill -- "-$ahead" 2>/dev/null' EXIT

# build <suite>: or the end of what was begun ahead. A suite that does not build counts as one failure.
build() {
  local suite=$1 code
  echo "== $suite: build"
  if [ -n "$ahead" ]; then
    wait "$ahead"
    code=$?
    ahead=
  else
    compile "$suite"
    code=$?
  fi
  if [ $code -ne 0 ]; then
    tail -n 60 "build/$suite.log"
    echo "== $suite: does not build"
    count "$suite" 0 1 0
  fi
  return $code
}

# check <suite> [ctest options]
check() {
  local suite=$1 report="$PWD/build/$1.xml" row
  shift
  echo "== $suite: tests"
  rm -f "$report"
  # One more than there are cores: many of them wait for most of their time.
  "${wrap[@]}" ctest --preset "$suite" --parallel $(($(nproc) + 1)) --no-tests=error --output-junit "$report" "$@"
  local code=$?
  row=$(grep -m1 -A8 '<testsuite ' "$report" 2>/dev/null | tr '\n\t' '  ')
  number() { sed -n "s/.* $1=\"\([0-9]*\)\".*/\1/p" <<<"$row"; }
  local all bad skips disabled off
  all=$(number tests)
  bad=$(number failures)
  skips=$(number skipped)
  disabled=$(number disabled)
  off=$((${skips:-0} + ${disabled:-0}))
  # Without a report (a ctest that cannot start, a full disk) nothing is known to have passed.
  [ -n "$all" ] && { [ $code -eq 0 ] || [ "${bad:-0}" -gt 0 ]; } || bad=1
  all=${all:-$bad}
  count "$suite" $((all - ${bad:-0} - off)) "${bad:-0}" "$off"
  # What a machine does not allow (root, namespaces) is skipped inside a program; say what it was.
  grep -h '^\[  SKIPPED \].*(' "build/$suite/Testing/Temporary/LastTest.log" 2>/dev/null | sort -u
  return 0
}

# fuzz: every target, from its corpus, into a folder of findings in the build tree.
fuzz() {
  local seconds=${ORRERY_FUZZ_SECONDS:-60} target name corpus found
  for target in build/fuzz/fuzz/*.corpus; do
    [ -e "$target" ] || { echo "== fuzz: no targets"; count fuzz 0 1 0; return; }
    name=$(basename "$target" .corpus)
    corpus=$(cat "$target")
    found="build/fuzz/found/$name"
    mkdir -p "$found"
    echo "== fuzz: $name, $seconds s"
    if "build/fuzz/fuzz/$name" -max_total_time="$seconds" -timeout=10 -verbosity=0 -print_final_stats=1 \
      -artifact_prefix="$found/" "$found" ${corpus:+"$corpus"} 2>&1 | tail -n 25; then
      count "$name" 1 0 0
    else
      count "$name" 0 1 0
    fi
  done
}

mkdir -p build
# Sanitizers of these compilers do not know address spaces as random as newer kernels make them.
unrandomised=()
setarch -R true 2>/dev/null && unrandomised=(setarch -R)
[ $# -gt 0 ] || set -- release
for suite in "$@"; do
  case "$suite" in
    release | clang | asan-ubsan | tsan | fuzz) ;;
    *) echo "test.sh: '$suite' is not one of release, asan-ubsan, tsan, clang, fuzz" >&2; exit 2 ;;
  esac
done
while [ $# -gt 0 ]; do
  suite=$1
  shift
  build "$suite" || continue
  [ $# -eq 0 ] || build_ahead "$1"
  case "$suite" in
    # Without the single-step tests: an instrumented program has too many instructions to stop at. Without
    # the long simulations, and what is drawn for a browser.
    asan-ubsan)
      wrap=("${unrandomised[@]}")
      check "$suite" --label-exclude '^source$' --exclude-regex 'killer_|^tool_(figures_short|draw|link_report)$' ;;
    tsan) wrap=("${unrandomised[@]}"); check "$suite" --label-regex '^(inprocess|tsan)$' ;;
    fuzz) fuzz ;;
    *) wrap=(); check "$suite" ;;
  esac
done

echo
printf '%s\n' "${summary[@]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
