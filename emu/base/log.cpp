// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/log.hpp"

#include <array>
#include <cerrno>

#include <unistd.h>

namespace orrery::log {

std::atomic<Level> g_level{Level::warn};

namespace {
std::atomic<int> g_pe{-1};
constexpr std::array<std::string_view, 6> kNames = {"off", "error", "warn", "info", "debug", "trace"};
}  // namespace

void set_pe(int pe) { g_pe.store(pe, std::memory_order_relaxed); }

void write_line(Level level, std::string_view text) {
  const int saved = errno;
  const int pe = g_pe.load(std::memory_order_relaxed);
  const auto name = kNames[static_cast<std::size_t>(level)];
  const auto line = pe < 0 ? fmt::format("orrery: {}: {}\n", name, text)
                           : fmt::format("orrery: pe {}: {}: {}\n", pe, name, text);
  // A short or failed write of a log line has nowhere to be reported.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  errno = saved;
}

void write_formatted(Level level, fmt::string_view format, fmt::format_args args) {
  write_line(level, fmt::vformat(format, args));
}

}  // namespace orrery::log
