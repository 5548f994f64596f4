// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The calls by which a program creates a thread. Each is libc's. Under a virtual clock the new thread counts
// as awake until it waits, so that what it does first comes at the time at which it was created. By itself: a
// program takes this out of the archive when no sanitizer has such a function.
#include "emu/base/start_thread.hpp"
#include "emu/clock/program_calls.hpp"
#include "emu/clock/thread_start.hpp"

#include <new>

#include <pthread.h>
#include <threads.h>

namespace orrery::clock {

namespace {

// After the thread's other destructors, but for those of its other keys.
void new_thread_ended(void* start) {
  if (VirtualClock* const clock = clock_of_process(); clock != nullptr) clock->new_thread_ends();
  delete static_cast<ThreadStart*>(start);
}

// A thread that is being created.
class Creation {
 public:
  Creation(VirtualClock& clock, void* argument) : clock_(clock) {
    static pthread_key_t key;
    static const bool has_key = pthread_key_create(&key, new_thread_ended) == 0;
    if (has_key) start_ = new (std::nothrow) ThreadStart;
    if (start_ == nullptr) return;
    *start_ = {.body = nullptr,
               .c11_body = nullptr,
               .argument = argument,
               .awake = awake_ = clock.thread_is_created(),
               .at_end = key};
  }
  Creation(const Creation&) = delete;
  Creation& operator=(const Creation&) = delete;

  // Null: the thread is not told from others.
  ThreadStart* start() { return start_; }
  void failed() {
    clock_.thread_is_not_created(awake_);
    delete start_;
  }

 private:
  VirtualClock& clock_;
  ThreadStart* start_ = nullptr;
  std::uint64_t awake_ = 0;
};

}  // namespace

}  // namespace orrery::clock

namespace oc = orrery::clock;

extern "C" {

int pthread_create(pthread_t* __restrict thread, const pthread_attr_t* __restrict how, void* (*body)(void*),
                   void* __restrict argument) noexcept {
  ORRERY_CLOCK_OR_REAL(pthread_create, thread, how, body, argument);
  if (orrery::starts_runtime_thread()) return real_call(thread, how, body, argument);
  oc::Creation creation(*clock, argument);
  oc::ThreadStart* const start = creation.start();
  if (start == nullptr) return real_call(thread, how, body, argument);
  start->body = body;
  const int error = real_call(thread, how, oc::begin_pthread, start);
  if (error != 0) creation.failed();
  return error;
}

int thrd_create(thrd_t* thread, thrd_start_t body, void* argument) {
  ORRERY_CLOCK_OR_REAL(thrd_create, thread, body, argument);
  oc::Creation creation(*clock, argument);
  oc::ThreadStart* const start = creation.start();
  if (start == nullptr) return real_call(thread, body, argument);
  start->c11_body = body;
  const int error = real_call(thread, oc::begin_c11_thread, start);
  if (error != thrd_success) creation.failed();
  return error;
}

}  // extern "C"
