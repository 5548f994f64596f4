// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/random.hpp"

#include "emu/base/check.hpp"
#include "emu/base/unique_fd.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

namespace orrery::job {

std::uint64_t random_nonzero() {
  std::uint64_t number = 0;
  while (number == 0) {
    const auto got = getrandom(&number, sizeof number, 0);
    ORRERY_CHECK(got == sizeof number || errno == EINTR, "getrandom: {}", std::strerror(errno));
  }
  return number;
}

std::array<std::uint8_t, 16> boot_id() {
  std::array<std::uint8_t, 16> id{};
  const UniqueFd fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  if (!fd.valid() || ::read(fd.get(), text.data(), text.size()) < 36) return id;
  std::size_t digits = 0;
  for (const char c : text) {
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0 || digits >= 32) continue;
    id[digits / 2] = static_cast<std::uint8_t>(id[digits / 2] << 4 | value);
    ++digits;
  }
  return id;
}

}  // namespace orrery::job
