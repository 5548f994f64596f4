// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The only file of the emulator that is built with exceptions: the constructor of std::thread has no other
// way to say that there is no room. None leaves it.
#include "emu/base/start_thread.hpp"

#include "emu/base/log.hpp"
#include "emu/base/wait.hpp"

#include <system_error>
#include <utility>

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

namespace orrery {

namespace {

constexpr std::int64_t kPauseNs = 5'000'000;

// initial-exec: no call to reach it.
__attribute__((tls_model("initial-exec"))) thread_local constinit bool t_starts = false;

class Starting {
 public:
  Starting() { t_starts = true; }
  ~Starting() { t_starts = false; }
  Starting(const Starting&) = delete;
  Starting& operator=(const Starting&) = delete;
};

bool try_to_start(std::thread& thread, const std::function<void()>& body) {
  const Starting starting;
  try {
    thread = std::thread(body);
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

bool starts_runtime_thread() { return t_starts; }

int create_runtime_thread(pthread_t* thread, void* (*body)(void*), void* argument) {
  // The first of all: ours, which liborrery.so would call else, knows no sanitizer.
  auto* const create = reinterpret_cast<decltype(&::pthread_create)>(dlsym(RTLD_DEFAULT, "pthread_create"));
  const Starting starting;
  return create(thread, nullptr, body, argument);
}

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
