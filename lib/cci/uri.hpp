// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace orrery::cci {

// A URI taken apart: scheme://host:port, or sm://path/hostname/pid/id.
struct Uri {
  std::string scheme;
  std::string host;        // empty for sm
  std::uint16_t port = 0;  // 0 for sm
  // Where the endpoint's processes of this host meet: the name of an abstract Unix socket.
  std::string meeting;
};

// Errors: invalid_param (not such a URI, or longer than 255 characters).
Result<Uri> parse_uri(std::string_view text);
// The name of the meeting place of an endpoint with that URI ("host:port", or what follows sm://).
std::string meeting_name(std::string_view rest);

// Puts the IPv4 address in the place of a host's name. May wait for a name server. A name that has none
// stays.
void resolve(Uri* uri);

}  // namespace orrery::cci
