// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Built without sanitizers: a sanitizer does not know a new thread yet.
#include "emu/clock/thread_start.hpp"

namespace orrery::clock {

namespace {

// initial-exec: no call to reach it.
__attribute__((tls_model("initial-exec"))) thread_local constinit ThreadState t_state{};

const ThreadStart* begin(void* of) {
  const auto* const start = static_cast<const ThreadStart*>(of);
  t_state.awake = start->awake;
  t_state.is_new = true;
  // Where that fails, the thread's end is not noticed: it is given up then.
  (void)pthread_setspecific(start->at_end, start);
  return start;
}

}  // namespace

ThreadState& state_of_thread() { return t_state; }

void* begin_pthread(void* of) {
  const ThreadStart* const start = begin(of);
  return start->body(start->argument);
}

int begin_c11_thread(void* of) {
  const ThreadStart* const start = begin(of);
  return start->c11_body(start->argument);
}

}  // namespace orrery::clock
