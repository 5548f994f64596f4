#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
# What programs measure under virtual time is what the model says, to the last digit that they print.
# usage: model_error_test.sh <orrery> <put_latency> <barrier>
set -euo pipefail
. "$(dirname "$0")/../../tools/model/check.sh"

# agrees <rows at least> <program> <options...>: every row's last column, the error in percent, is 0.00.
agrees() {
  local rows=$1 out errors; shift
  out=$("$orrery" run -n 2 --machine aries --timeout 60 "$@" --model -i 20 2>&1) || fail "$*: exit code $?: $out"
  errors=$(awk '/^[0-9]/ { print $NF }' <<<"$out")
  [ "$(grep -c . <<<"$errors")" -ge "$rows" ] || fail "$*: fewer than $rows rows in: $out"
  ! grep -vxE -- '-?0\.00' <<<"$errors" || fail "$*: not the model's times: $out"
}
agrees 10 "$2" -M 65536
agrees 1 "$3" --pmi
