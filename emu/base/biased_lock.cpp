// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/biased_lock.hpp"

namespace orrery {

constinit thread_local char t_thread_mark = 0;

}  // namespace orrery
