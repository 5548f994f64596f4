// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/thread_stat.hpp"

#include "emu/base/unique_fd.hpp"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <string_view>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace orrery::clock {

ThreadStat thread_stat(int pid, int tid) {
  const UniqueFd fd(::open(fmt::format("/proc/{}/task/{}/stat", pid, tid).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text;
  const auto bytes = fd.valid() ? syscall(SYS_read, fd.get(), text.data(), text.size()) : -1;
  if (bytes <= 0) return {};
  std::string_view rest(text.data(), static_cast<std::size_t>(bytes));
  const auto name_end = rest.rfind(')');
  if (name_end == std::string_view::npos || rest.size() < name_end + 3) return {};
  rest.remove_prefix(name_end + 2);
  ThreadStat stat{.state = rest[0]};
  for (int field = 3; field < 15 && !rest.empty(); ++field) {
    const auto space = rest.find(' ');
    rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
    if (field >= 13) {
      std::uint64_t ticks = 0;
      (void)std::from_chars(rest.data(), rest.data() + rest.size(), ticks);
      stat.ticks += ticks;
    }
  }
  return stat;
}

}  // namespace orrery::clock
