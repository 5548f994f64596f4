// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <pthread.h>

namespace orrery {

// Takes a robust mutex that processes share, when a try has found it held. 0, or EOWNERDEAD: the caller
// repairs what it guards, and calls pthread_mutex_consistent(). Other errors are pthread_mutex_lock()'s.
//
// Not pthread_mutex_lock(): where the holder is killed between its unlock and the wake of a waiter, and
// another thread takes the mutex in between, the kernel finds a mutex of another owner and wakes no waiter,
// and that owner knows of none. So a waiter looks again from time to time. Any thread.
int lock_robust(pthread_mutex_t& mutex);

}  // namespace orrery
