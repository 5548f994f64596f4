// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/turn_spins.hpp"

#include "emu/base/unique_fd.hpp"

#include <charconv>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace orrery::clock {

// The kernel tells a thread's time on a core, then its time in wait for one, in ns. A kernel that does not:
// every PE stays where it is.
void TurnSpins::look_at_host() {
  const UniqueFd file(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return;
  char text[96];
  const ssize_t size = read(file.get(), text, sizeof text);
  if (size <= 0) return;
  const char* const end = text + size;
  std::int64_t ran = 0, waited = 0;
  const auto first = std::from_chars(text, end, ran);
  if (first.ec != std::errc{} || first.ptr == end) return;
  if (std::from_chars(first.ptr + 1, end, waited).ec != std::errc{}) return;
  judge(waited, monotonic_ns());
}

void TurnSpins::share_core() const {
  cpu_set_t one;
  CPU_ZERO(&one);
  if (core_ < 0 || core_ >= CPU_SETSIZE) return;
  CPU_SET(core_, &one);
  (void)sched_setaffinity(0, sizeof one, &one);  // a core that this process may not use: it stays where it is
}

}  // namespace orrery::clock
