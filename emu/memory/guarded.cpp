// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/guarded.hpp"

#include "emu/memory/fault_handler.hpp"

#include <signal.h>

namespace orrery::memory {

namespace {

struct ThreadGuard {
  sigjmp_buf* exit;
  bool unblocked;
};
// initial-exec: no call, and no allocation, to reach it from a signal handler.
__attribute__((tls_model("initial-exec"))) thread_local constinit ThreadGuard t_guard{};
}  // namespace

sigjmp_buf* guarded_exit() { return t_guard.exit; }

bool run_guarded(void (*body)(void*), void* argument) {
  if (!t_guard.unblocked) {
    // A blocked fault kills instead of being handled.
    sigset_t faults;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
    t_guard.unblocked = true;
  }
  // The program may have installed a handler of its own since.
  keep_fault_handler_in_front();
  sigjmp_buf exit;
  // The mask is not saved (a system call): our handler runs with nothing blocked.
  if (sigsetjmp(exit, 0) != 0) {
    t_guard.exit = nullptr;
    return false;
  }
  t_guard.exit = &exit;
  body(argument);
  t_guard.exit = nullptr;
  return true;
}

}  // namespace orrery::memory
