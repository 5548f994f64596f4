// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The calls by which a program's thread waits, without a limit, for another thread of its own, and those
// that wake it. Each is libc's, and the clock is told of it. While the thread that makes time pass waits for
// another one, that one makes time pass. While a thread that was woken has not waited again, time stands
// still.
#include "emu/clock/program_calls.hpp"

#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

namespace orrery::clock {

namespace {

// A wait of the calling thread's for another one.
class ThreadWait {
 public:
  explicit ThreadWait(const void* on) : clock_(clock_for_thread()), on_(on) {
    if (clock_ == nullptr) [[likely]]
      return;
    clock_->begin_thread_wait(on_);
  }
  ~ThreadWait() {
    if (clock_ != nullptr) clock_->end_thread_wait(on_);
  }
  ThreadWait(const ThreadWait&) = delete;
  ThreadWait& operator=(const ThreadWait&) = delete;

 private:
  VirtualClock* const clock_;
  const void* const on_;
};

void wake(const void* on, bool all) {
  VirtualClock* const clock = clock_of_process();
  if (clock != nullptr && !VirtualClock::is_inside()) clock->wake_threads(on, all);
}

}  // namespace

}  // namespace orrery::clock

namespace oc = orrery::clock;

extern "C" {

int pthread_cond_wait(pthread_cond_t* __restrict condition, pthread_mutex_t* __restrict mutex) {
  ORRERY_REAL(pthread_cond_wait);
  const oc::ThreadWait wait(condition);
  return real_call(condition, mutex);
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  ORRERY_REAL(pthread_cond_signal);
  oc::wake(condition, false);
  return real_call(condition);
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  ORRERY_REAL(pthread_cond_broadcast);
  oc::wake(condition, true);
  return real_call(condition);
}

int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  ORRERY_REAL(cnd_wait);
  const oc::ThreadWait wait(condition);
  return real_call(condition, mutex);
}

int cnd_signal(cnd_t* condition) {
  ORRERY_REAL(cnd_signal);
  oc::wake(condition, false);
  return real_call(condition);
}

int cnd_broadcast(cnd_t* condition) {
  ORRERY_REAL(cnd_broadcast);
  oc::wake(condition, true);
  return real_call(condition);
}

int sem_wait(sem_t* semaphore) {
  ORRERY_REAL(sem_wait);
  const oc::ThreadWait wait(semaphore);
  return real_call(semaphore);
}

int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  ORRERY_REAL(pthread_barrier_wait);
  const oc::ThreadWait wait(barrier);
  return real_call(barrier);
}

int pthread_join(pthread_t thread, void** result) {
  ORRERY_REAL(pthread_join);
  const oc::ThreadWait wait(reinterpret_cast<const void*>(thread));
  return real_call(thread, result);
}

int thrd_join(thrd_t thread, int* result) {
  ORRERY_REAL(thrd_join);
  const oc::ThreadWait wait(reinterpret_cast<const void*>(thread));
  return real_call(thread, result);
}

}  // extern "C"
