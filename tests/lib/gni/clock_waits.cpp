// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Every call that waits for another thread until some time, with no thread there to end it: what it
// returns and how long it took by the program's own clock. And one that a thread does end.
#include "tests/lib/gni/clock_waits.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <thread>

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

namespace {

std::int64_t now_us(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000;
}
timespec in_250_ms(clockid_t id) {
  const std::int64_t us = now_us(id) + 250'000;
  return {static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000 * 1000)};
}

template <typename Wait>
void tell(const char* name, Wait wait) {
  const std::int64_t start = now_us(CLOCK_MONOTONIC);
  const int result = wait();
  std::printf("%s %d after %lld us\n", name, result, static_cast<long long>(now_us(CLOCK_MONOTONIC) - start));
}
int error_of(int result) { return result == 0 ? 0 : errno; }

}  // namespace

void timed_waits() {
  const timespec wall = in_250_ms(CLOCK_REALTIME);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  sem_t empty;
  sem_init(&empty, 0, 0);
  mtx_t plain;
  cnd_t never;
  mtx_init(&plain, mtx_timed);
  cnd_init(&never);
  // Held by another thread, which has ended: it is never released.
  std::thread([&] {
    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&lock);
    mtx_lock(&plain);
  }).join();

  tell("sem_timedwait", [&] { return error_of(sem_timedwait(&empty, &wall)); });
  const auto at = [](clockid_t id, auto call) {
    const timespec until = in_250_ms(id);
    return call(&until);
  };
  tell("sem_clockwait", [&] {
    return at(CLOCK_MONOTONIC, [&](auto* t) { return error_of(sem_clockwait(&empty, CLOCK_MONOTONIC, t)); });
  });
  tell("mutex_timedlock",
       [&] { return at(CLOCK_REALTIME, [&](auto* t) { return pthread_mutex_timedlock(&mutex, t); }); });
  tell("mutex_clocklock", [&] {
    return at(CLOCK_MONOTONIC, [&](auto* t) { return pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, t); });
  });
  tell("rwlock_timedrdlock",
       [&] { return at(CLOCK_REALTIME, [&](auto* t) { return pthread_rwlock_timedrdlock(&lock, t); }); });
  tell("rwlock_timedwrlock",
       [&] { return at(CLOCK_REALTIME, [&](auto* t) { return pthread_rwlock_timedwrlock(&lock, t); }); });
  tell("rwlock_clockrdlock", [&] {
    return at(CLOCK_MONOTONIC,
              [&](auto* t) { return pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, t); });
  });
  tell("rwlock_clockwrlock", [&] {
    return at(CLOCK_MONOTONIC,
              [&](auto* t) { return pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, t); });
  });
  tell("mtx_timedlock", [&] {
    return at(CLOCK_REALTIME,
              [&](auto* t) { return static_cast<int>(mtx_timedlock(&plain, t) == thrd_timedout); });
  });
  tell("cnd_timedwait", [&] {
    mtx_t own;
    mtx_init(&own, mtx_plain);
    mtx_lock(&own);
    return at(CLOCK_REALTIME,
              [&](auto* t) { return static_cast<int>(cnd_timedwait(&never, &own, t) == thrd_timedout); });
  });
  tell("thrd_sleep", [] {
    const timespec quarter{0, 250'000'000};
    return thrd_sleep(&quarter, nullptr);
  });
  tell("sigtimedwait", [] {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    const timespec quarter{0, 250'000'000};
    return sigtimedwait(&set, nullptr, &quarter) < 0 ? errno : 0;
  });
  tell("epoll_pwait2", [] {
    const int epoll = epoll_create1(0);
    epoll_event event{};
    const timespec quarter{0, 250'000'000};
    const int found = epoll_pwait2(epoll, &event, 1, &quarter, nullptr);
    close(epoll);
    return found;
  });
  // What is there already is taken at once.
  sem_post(&empty);
  tell("sem_timedwait_posted",
       [&] { return at(CLOCK_REALTIME, [&](auto* t) { return error_of(sem_timedwait(&empty, t)); }); });
}
