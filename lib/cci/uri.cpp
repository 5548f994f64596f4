// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/cci/uri.hpp"

#include "emu/wire/frame_check.hpp"

#include <charconv>
#include <cstdio>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace orrery::cci {

std::string meeting_name(std::string_view rest) {
  std::string name = "orrery-cci:";
  name += rest;
  if (name.size() <= 100) return name;
  // An abstract name has at most 107 bytes: a longer one is told by its sum.
  char sum[20];
  const std::uint64_t hash = wire::siphash24({0, 0}, std::as_bytes(std::span(rest)));
  std::snprintf(sum, sizeof sum, "#%016llx", static_cast<unsigned long long>(hash));
  return name.substr(0, 80) + sum;
}

Result<Uri> parse_uri(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos || colon == 0 || text.size() > 255) return Errc::invalid_param;
  Uri uri;
  uri.scheme = text.substr(0, colon);
  const std::string_view rest = text.substr(colon + 3);
  if (uri.scheme == "sm") {
    if (rest.find('/') == std::string_view::npos) return Errc::invalid_param;
    uri.meeting = meeting_name(rest);
    return uri;
  }
  const std::size_t at = rest.rfind(':');
  if (at == std::string_view::npos || at == 0) return Errc::invalid_param;
  const std::string_view port = rest.substr(at + 1);
  unsigned value = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), value);
  if (error != std::errc{} || end != port.data() + port.size() || value == 0 || value > 65'535)
    return Errc::invalid_param;
  uri.host = rest.substr(0, at);
  uri.port = static_cast<std::uint16_t>(value);
  uri.meeting = meeting_name(rest);
  return uri;
}

void resolve(Uri* uri) {
  in_addr address{};
  if (uri->host.empty() || ::inet_pton(AF_INET, uri->host.c_str(), &address) == 1) return;
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(uri->host.c_str(), nullptr, &wanted, &found) != 0) return;
  char text[INET_ADDRSTRLEN] = {};
  const auto* const first = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  if (::inet_ntop(AF_INET, &first->sin_addr, text, sizeof text) != nullptr) {
    uri->host = text;
    uri->meeting = meeting_name(uri->host + ":" + std::to_string(uri->port));
  }
  ::freeaddrinfo(found);
}

}  // namespace orrery::cci
