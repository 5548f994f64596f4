// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <fmt/core.h>

#include <atomic>
#include <cstdint>
#include <string_view>

namespace orrery::log {

// Levels by expected volume: error and warn once per cause, info per job, debug per object, trace per
// operation. ORRERY_LOG picks the level; the default is warn.
enum class Level : std::uint8_t { off, error, warn, info, debug, trace };

// Level of this process; read on every call, so a plain relaxed load.
extern std::atomic<Level> g_level;

// One line to stderr with one writev(2): "orrery: pe 3: warn: text". Thread-safe; does not allocate.
void write_line(Level level, std::string_view text);

// As above, formatted here: what a call site leaves in its own library needs nothing of libfmt.
void write_formatted(Level level, fmt::string_view format, fmt::format_args args);

// Names the PE that lines carry; -1 before it is known.
void set_pe(int pe);

inline bool enabled(Level level) { return level <= g_level.load(std::memory_order_relaxed); }

template <typename... Args>
void write(Level level, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(level)) write_formatted(level, format, fmt::make_format_args(args...));
}
template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::error, format, std::forward<Args>(args)...);
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::warn, format, std::forward<Args>(args)...);
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::info, format, std::forward<Args>(args)...);
}
template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::debug, format, std::forward<Args>(args)...);
}

}  // namespace orrery::log
