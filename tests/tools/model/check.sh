# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# Sourced by the tests of the command: run things, look at what they say, stop at the first surprise.
orrery=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }

# says <text> <arguments...>: exit code 0, and the text somewhere in the output.
says() {
  local text=$1; shift
  local out
  out=$("$orrery" "$@" 2>&1) || fail "orrery $*: exit code $?: $out"
  grep -qF -- "$text" <<<"$out" || fail "orrery $*: no '$text' in: $out"
}

# refuses <text> <arguments...>: exit code 2, one line on stderr with the text in it.
refuses() {
  local text=$1; shift
  local out code=0
  out=$("$orrery" "$@" 2>&1 >/dev/null) || code=$?
  [ "$code" = 2 ] || fail "orrery $*: exit code $code, not 2"
  [ "$(wc -l <<<"$out")" = 1 ] || fail "orrery $*: not one line: $out"
  grep -qF -- "$text" <<<"$out" || fail "orrery $*: no '$text' in: $out"
}
