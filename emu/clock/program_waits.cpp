// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The calls by which a program waits for another thread of its own until some time, served in virtual time as
// those of program_time.cpp are. The other thread runs in real time: it is given a moment of that, then
// virtual time passes to the deadline.
#include "emu/clock/program_calls.hpp"

#include <cerrno>
#include <optional>

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <threads.h>

namespace orrery::clock {

namespace {

int wait_for_signal(VirtualClock& clock, pthread_cond_t* condition, pthread_mutex_t* mutex, Picos until) {
  ORRERY_REAL(pthread_cond_clockwait);
  const timespec moment = a_moment_from_now(CLOCK_MONOTONIC);
  const int woken = real_call(condition, mutex, CLOCK_MONOTONIC, &moment);
  if (woken != ETIMEDOUT) return woken;
  pthread_mutex_unlock(mutex);
  clock.sleep_until(until);
  pthread_mutex_lock(mutex);
  return ETIMEDOUT;
}

// A condition's clock is not known: CLOCK_REALTIME unless it was made for the other one, whose times are
// small.
clockid_t clock_of(const timespec& until) {
  return until.tv_sec < kRealtimeStart ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

// Takes what `wait(real deadline)` waits for; 0, or ETIMEDOUT at the deadline, or another error of the
// call's. `wait` returns an error number.
template <typename Wait>
int wait_for_lock(VirtualClock& clock, clockid_t id, const timespec& until, Wait wait) {
  const timespec moment = a_moment_from_now(id);
  const int first = wait(&moment);
  if (first != ETIMEDOUT) return first;
  clock.sleep_until(point_of(until, id));
  constexpr timespec kPast{};
  return wait(&kPast);
}

// What a call that sets errno returns for an error number.
int with_errno(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

}  // namespace

}  // namespace orrery::clock

namespace oc = orrery::clock;

extern "C" {

int pthread_cond_timedwait(pthread_cond_t* __restrict condition, pthread_mutex_t* __restrict mutex,
                           const timespec* __restrict until) {
  ORRERY_CLOCK_OR_REAL(pthread_cond_timedwait, condition, mutex, until);
  if (!oc::is_valid(until)) return EINVAL;
  return oc::wait_for_signal(*clock, condition, mutex, oc::point_of(*until, oc::clock_of(*until)));
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t id,
                           const timespec* until) {
  ORRERY_CLOCK_OR_REAL(pthread_cond_clockwait, condition, mutex, id, until);
  if (!oc::is_valid(until)) return EINVAL;
  return oc::wait_for_signal(*clock, condition, mutex, oc::point_of(*until, id));
}

int pthread_mutex_timedlock(pthread_mutex_t* __restrict mutex, const timespec* __restrict until) noexcept {
  ORRERY_CLOCK_OR_REAL(pthread_mutex_timedlock, mutex, until);
  if (!oc::is_valid(until)) return real_call(mutex, until);
  return oc::wait_for_lock(*clock, CLOCK_REALTIME, *until,
                           [&](const timespec* at) { return real_call(mutex, at); });
}

int pthread_mutex_clocklock(pthread_mutex_t* __restrict mutex, clockid_t id,
                            const timespec* __restrict until) noexcept {
  ORRERY_CLOCK_OR_REAL(pthread_mutex_clocklock, mutex, id, until);
  if (!oc::is_valid(until) || !(oc::is_steady(id) || oc::is_wall(id))) return real_call(mutex, id, until);
  return oc::wait_for_lock(*clock, id, *until, [&](const timespec* at) { return real_call(mutex, id, at); });
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t* __restrict lock, const timespec* __restrict until) noexcept {
  ORRERY_CLOCK_OR_REAL(pthread_rwlock_timedrdlock, lock, until);
  if (!oc::is_valid(until)) return real_call(lock, until);
  return oc::wait_for_lock(*clock, CLOCK_REALTIME, *until,
                           [&](const timespec* at) { return real_call(lock, at); });
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t* __restrict lock, const timespec* __restrict until) noexcept {
  ORRERY_CLOCK_OR_REAL(pthread_rwlock_timedwrlock, lock, until);
  if (!oc::is_valid(until)) return real_call(lock, until);
  return oc::wait_for_lock(*clock, CLOCK_REALTIME, *until,
                           [&](const timespec* at) { return real_call(lock, at); });
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t* __restrict lock, clockid_t id,
                               const timespec* __restrict until) noexcept {
  ORRERY_CLOCK_OR_REAL(pthread_rwlock_clockrdlock, lock, id, until);
  if (!oc::is_valid(until) || !(oc::is_steady(id) || oc::is_wall(id))) return real_call(lock, id, until);
  return oc::wait_for_lock(*clock, id, *until, [&](const timespec* at) { return real_call(lock, id, at); });
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t* __restrict lock, clockid_t id,
                               const timespec* __restrict until) noexcept {
  ORRERY_CLOCK_OR_REAL(pthread_rwlock_clockwrlock, lock, id, until);
  if (!oc::is_valid(until) || !(oc::is_steady(id) || oc::is_wall(id))) return real_call(lock, id, until);
  return oc::wait_for_lock(*clock, id, *until, [&](const timespec* at) { return real_call(lock, id, at); });
}

int sem_timedwait(sem_t* __restrict semaphore, const timespec* __restrict until) {
  ORRERY_CLOCK_OR_REAL(sem_timedwait, semaphore, until);
  if (!oc::is_valid(until)) return real_call(semaphore, until);
  return oc::with_errno(oc::wait_for_lock(*clock, CLOCK_REALTIME, *until, [&](const timespec* at) {
    return real_call(semaphore, at) == 0 ? 0 : errno;
  }));
}

int sem_clockwait(sem_t* __restrict semaphore, clockid_t id, const timespec* __restrict until) {
  ORRERY_CLOCK_OR_REAL(sem_clockwait, semaphore, id, until);
  if (!oc::is_valid(until) || !(oc::is_steady(id) || oc::is_wall(id))) return real_call(semaphore, id, until);
  return oc::with_errno(oc::wait_for_lock(
      *clock, id, *until, [&](const timespec* at) { return real_call(semaphore, id, at) == 0 ? 0 : errno; }));
}

int mtx_timedlock(mtx_t* __restrict mutex, const timespec* __restrict until) {
  ORRERY_CLOCK_OR_REAL(mtx_timedlock, mutex, until);
  if (!oc::is_valid(until)) return real_call(mutex, until);
  const auto lock = [&](const timespec* at) {
    const int taken = real_call(mutex, at);
    return taken == thrd_timedout ? ETIMEDOUT : taken;
  };
  const int taken = oc::wait_for_lock(*clock, CLOCK_REALTIME, *until, lock);
  return taken == ETIMEDOUT ? static_cast<int>(thrd_timedout) : taken;
}

int cnd_timedwait(cnd_t* __restrict condition, mtx_t* __restrict mutex, const timespec* __restrict until) {
  ORRERY_CLOCK_OR_REAL(cnd_timedwait, condition, mutex, until);
  if (!oc::is_valid(until)) return real_call(condition, mutex, until);
  const timespec moment = oc::a_moment_from_now(CLOCK_REALTIME);
  const int woken = real_call(condition, mutex, &moment);
  if (woken != thrd_timedout) return woken;
  mtx_unlock(mutex);
  clock->sleep_until(oc::point_of(*until, CLOCK_REALTIME));
  mtx_lock(mutex);
  return thrd_timedout;
}

int thrd_sleep(const timespec* duration, timespec* left) {
  ORRERY_CLOCK_OR_REAL(thrd_sleep, duration, left);
  if (!oc::is_valid(duration)) return real_call(duration, left);
  clock->sleep_until(clock->now() + oc::duration_of(*duration));
  return 0;
}

int sigtimedwait(const sigset_t* __restrict set, siginfo_t* __restrict info,
                 const timespec* __restrict timeout) {
  ORRERY_CLOCK_OR_REAL(sigtimedwait, set, info, timeout);
  if (timeout == nullptr || !oc::is_valid(timeout)) return real_call(set, info, timeout);
  constexpr timespec kMoment{0, 1'000'000};
  const int signal = real_call(set, info, &kMoment);
  if (signal >= 0 || errno != EAGAIN) return signal;
  clock->sleep_until(clock->now() + oc::duration_of(*timeout));
  constexpr timespec kNone{};
  return real_call(set, info, &kNone);
}

}  // extern "C"
