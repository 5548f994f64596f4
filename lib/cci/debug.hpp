// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <string_view>

// What CCI_DEBUG asks to be told, one line on stderr each: "cci: conn: ...".
namespace orrery::cci::debug {

enum class Topic : std::uint8_t { mem, msg, peer, conn, err, func, info, warn, ctp, ep };

// Reads CCI_DEBUG: names of topics with commas between, or "all". An unknown name is said and left out.
void read_environment();
bool enabled(Topic topic);
void tell(Topic topic, std::string_view text);
// Always said: what a user has to know.
void complain(std::string_view text);

}  // namespace orrery::cci::debug
