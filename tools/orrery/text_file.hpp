// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace orrery::tool {

inline constexpr std::size_t kLargestTextFile = std::size_t{16} << 20;

// The bytes of a file that a user named; nothing (errno) when it cannot be read, is a directory, or has more
// than kLargestTextFile (EFBIG). Thread-safe.
std::optional<std::string> read_text_file(const std::string& path);

}  // namespace orrery::tool
