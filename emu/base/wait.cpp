// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/wait.hpp"

#include "emu/base/timed_path.hpp"

#include <cerrno>
#include <climits>

#include <dlfcn.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace orrery {

std::int64_t monotonic_ns() {
  // libc's own: ours of the same name serves the program in its time (emu/clock/program_time.cpp).
  static auto* const libc_call = [] {
    void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    return reinterpret_cast<int (*)(clockid_t, timespec*)>(dlsym(libc, "clock_gettime"));
  }();
  timespec now{};
  libc_call(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

namespace {
// initial-exec: no call to reach it.
__attribute__((tls_model("initial-exec"))) thread_local constinit bool t_runtime_thread = false;
}  // namespace

void mark_runtime_thread() { t_runtime_thread = true; }
bool is_runtime_thread() { return t_runtime_thread; }

bool futex_wait(FutexWord& word, std::uint32_t expected, std::optional<std::int64_t> deadline_ns) {
  timespec limit{};
  timespec* limit_ptr = nullptr;
  if (deadline_ns) {
    const std::int64_t at = *deadline_ns < 0 ? 0 : *deadline_ns;
    limit.tv_sec = at / 1'000'000'000;
    limit.tv_nsec = at % 1'000'000'000;
    limit_ptr = &limit;
  }
  // FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time; without FUTEX_PRIVATE_FLAG it is keyed by
  // the page, so it meets wakers in other processes.
  const long rc = syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_BITSET, expected,
                          limit_ptr, nullptr, FUTEX_BITSET_MATCH_ANY);
  return !(rc == -1 && errno == ETIMEDOUT);
}

ORRERY_TIMED_PATH bool futex_wait_for(FutexWord& word, std::uint32_t expected, std::int64_t ns) {
  const timespec span{ns / 1'000'000'000, ns % 1'000'000'000};
  // FUTEX_WAIT takes a span of CLOCK_MONOTONIC.
  const long rc =
      syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, expected, &span, nullptr, 0);
  return !(rc == -1 && errno == ETIMEDOUT);
}

ORRERY_TIMED_PATH void futex_wake(FutexWord& word, int count) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, count, nullptr, nullptr, 0);
}

void yield_cpu() { sched_yield(); }

}  // namespace orrery
