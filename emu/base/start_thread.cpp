// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The only file of the emulator that is built with exceptions: the constructor of std::thread has no other
// way to say that there is no room. None leaves it.
#include "emu/base/start_thread.hpp"

#include "emu/base/log.hpp"
#include "emu/base/wait.hpp"

#include <system_error>
#include <utility>

#include <pthread.h>
#include <time.h>

namespace orrery {

namespace {

constexpr std::int64_t kPauseNs = 5'000'000;

bool try_to_start(std::thread& thread, const std::function<void()>& body) {
  try {
    thread = std::thread(body);
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

bool start_thread(std::thread& thread, std::function<void()> body, std::int64_t patience_ns) {
  const std::int64_t limit = monotonic_ns() + patience_ns;
  while (!try_to_start(thread, body)) {
    if (monotonic_ns() >= limit) return false;
    const timespec pause{0, kPauseNs};
    nanosleep(&pause, nullptr);
  }
  return true;
}

void start_detached_thread(const char* name, const std::function<void()>& body) {
  std::thread thread;
  bool told = false;
  while (!start_thread(thread, body)) {
    if (!std::exchange(told, true))
      log::warn(
          "no room for the thread {}: waiting until the limit of threads (ulimit -u, pids.max) allows one",
          name);
  }
  pthread_setname_np(thread.native_handle(), name);
  thread.detach();
}

}  // namespace orrery
