// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/log.hpp"

#include "emu/base/printable.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include <sys/uio.h>
#include <unistd.h>

namespace orrery::log {

std::atomic<Level> g_level{Level::warn};

namespace {
std::atomic<int> g_pe{-1};
constexpr std::array<std::string_view, 6> kNames = {"off", "error", "warn", "info", "debug", "trace"};
}  // namespace

void set_pe(int pe) { g_pe.store(pe, std::memory_order_relaxed); }

void write_line(Level level, std::string_view raw) {
  // A text may name a socket of another user or what another host has said.
  std::array<char, 8192> text;
  const std::size_t length = printable_into(text, raw);
  const int saved = errno;
  const int pe = g_pe.load(std::memory_order_relaxed);
  const auto name = kNames[static_cast<std::size_t>(level)];
  std::array<char, 64> head;
  const auto end = pe < 0 ? fmt::format_to_n(head.data(), head.size(), "orrery: {}: ", name)
                          : fmt::format_to_n(head.data(), head.size(), "orrery: pe {}: {}: ", pe, name);
  char line_end = '\n';
  const iovec parts[] = {
      {head.data(), std::min(end.size, head.size())}, {text.data(), length}, {&line_end, 1}};
  // A short or failed write of a log line has nowhere to be reported.
  [[maybe_unused]] const auto written = ::writev(STDERR_FILENO, parts, 3);
  errno = saved;
}

void write_formatted(Level level, fmt::string_view format, fmt::format_args args) {
  // Nothing of the heap, which a thread that logs may be moving.
  std::array<char, 4096> text;
  const auto end = fmt::vformat_to_n(text.data(), text.size(), format, args);
  write_line(level, {text.data(), std::min(end.size, text.size())});
}

}  // namespace orrery::log
