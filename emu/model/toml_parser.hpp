// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

// toml++ as this layer compiles it: without exceptions, and without its assertions.
//
// toml++ takes for granted, by assertion or (with NDEBUG) by __builtin_unreachable, what malformed input
// breaks: 3.3.0 does for a table header that starts with neither a key nor a quote. Its own checks behind
// the assertions refuse such input properly, so the assertions are taken out.
#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
