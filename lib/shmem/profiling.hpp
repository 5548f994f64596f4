// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "include/shmem/pshmem.h"

// The profiling interface: a second name for each function, in the source that defines it. The first name is
// weak, so that a tool may define it beside the static library. Stands before the definitions: clang passes
// over an attribute that comes after them.
#if defined(__GNUC__) && !defined(__clang__)
// The second name does not say, as the compiler knows of the first, that nothing is thrown.
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif
#define ORRERY_PROFILED(NAME)                                       \
  extern decltype(shmem_##NAME) shmem_##NAME __attribute__((weak)); \
  extern decltype(shmem_##NAME) pshmem_##NAME __attribute__((alias("shmem_" #NAME)));
