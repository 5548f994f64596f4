// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>

#include <pthread.h>
#include <threads.h>

// How a thread begins that the program has created beside a virtual clock (program_creates.cpp).
namespace orrery::clock {

// What ThreadWaits knows of the calling thread.
struct ThreadState {
  std::uint64_t awake = 0;     // the round in which it counts as awake, and 1; 0: it does not
  bool is_new = false;         // it was created beside the clock, and has not been in that
  bool counts_as_new = true;   // it became awake as such a one
  std::uint32_t looks = 0;     // in vain, since then
  std::uint64_t given_up = 0;  // `awake` when it was given up as a new one; 0: it was not
};
ThreadState& state_of_thread();

// On the heap, from the creation to the thread's end.
struct ThreadStart {
  void* (*body)(void*);
  thrd_start_t c11_body;
  void* argument;
  std::uint64_t awake;   // ThreadWaits::create()
  pthread_key_t at_end;  // whose destructor is given this
};

// What libc's pthread_create() and thrd_create() begin instead of the program's function; `start`: a
// ThreadStart. Neither goes through a sanitizer, whose own first function may be the body.
void* begin_pthread(void* start);
int begin_c11_thread(void* start);

}  // namespace orrery::clock
