// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/guarded.hpp"

#include "emu/base/own_descriptor.hpp"
#include "emu/memory/fault_handler.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

namespace orrery::memory {

namespace {

struct ThreadGuard {
  sigjmp_buf* exit;
  bool unblocked;
};
// initial-exec: no call, and no allocation, to reach it from a signal handler.
__attribute__((tls_model("initial-exec"))) thread_local constinit ThreadGuard t_guard{};

// `move` takes the descriptor of this process's memory and how far it came, and says what it moved, as
// pread(2) does.
template <typename Move>
bool through_the_kernel(std::size_t bytes, Move move) {
  // Opened anew: what a parent of fork() opened is the parent's memory.
  const int fd = own_descriptor(::open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  if (fd < 0) return false;
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t moved = move(fd, done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) break;
    done += static_cast<std::size_t>(moved);
  }
  ::close(fd);
  return done == bytes;
}

off_t offset_of(const std::byte* at) { return static_cast<off_t>(reinterpret_cast<std::uintptr_t>(at)); }

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

bool store_protected(std::byte* to, const std::byte* from, std::size_t bytes) {
  return through_the_kernel(bytes, [&](int fd, std::size_t done) {
    return ::pwrite(fd, from + done, bytes - done, offset_of(to + done));
  });
}

bool load_protected(std::byte* to, const std::byte* from, std::size_t bytes) {
  return through_the_kernel(bytes, [&](int fd, std::size_t done) {
    return ::pread(fd, to + done, bytes - done, offset_of(from + done));
  });
}

}  // namespace orrery::memory
