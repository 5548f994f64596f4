# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
#
# For scripts of tests: . tests/skip.sh; skip CAUSE MESSAGE ends the script because the machine lacks something.
# 77 is "skipped" for ctest; where ORRERY_TESTS_REQUIRE, a list with commas, has the cause it is a failure.
# Causes are those of tests/require.hpp.
skip() {
  case ",${ORRERY_TESTS_REQUIRE:-}," in
    *,"$1",*) echo "required, and not here: $1: $2" >&2; exit 1 ;;
  esac
  echo "skipped: $2"
  exit 77
}
