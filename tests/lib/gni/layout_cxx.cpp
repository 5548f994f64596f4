// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The same assertions as C++.
#include "tests/lib/gni/layout.c"  // NOLINT: a file of assertions
