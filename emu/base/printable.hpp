// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace orrery {

// `text` as a terminal shows it and obeys none of it: control characters other than newline and tab, and
// every byte beyond ASCII, are written as "\x1b". For all that comes from outside: names of sockets, messages
// of other hosts, words of files and variables. Any thread.
std::string printable(std::string_view text);

// As above, into `out`, without memory of the heap; returns how many bytes it wrote. What does not fit is
// left away.
std::size_t printable_into(std::span<char> out, std::string_view text);

}  // namespace orrery
