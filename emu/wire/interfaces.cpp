// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/interfaces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace orrery::wire {

namespace {

struct IpAddress {
  int family = AF_UNSPEC;
  std::array<std::uint8_t, 16> bytes{};
  unsigned bits() const { return family == AF_INET ? 32 : 128; }
  bool starts_as(const IpAddress& other, unsigned count) const {
    if (family != other.family) return false;
    for (unsigned bit = 0; bit < count; ++bit) {
      const std::uint8_t mask = static_cast<std::uint8_t>(0x80u >> bit % 8);
      if (((bytes[bit / 8] ^ other.bytes[bit / 8]) & mask) != 0) return false;
    }
    return true;
  }
};

std::optional<IpAddress> parse(std::string_view text) {
  const std::string terminated(text);
  for (const int family : {AF_INET, AF_INET6}) {
    IpAddress address;
    address.family = family;
    if (inet_pton(family, terminated.c_str(), address.bytes.data()) == 1) return address;
  }
  return std::nullopt;
}

std::string list_of(const std::vector<InterfaceAddress>& here) {
  std::vector<std::string> all;
  for (const InterfaceAddress& one : here) all.push_back(one.interface + " " + one.address);
  return all.empty() ? "none" : fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

std::vector<InterfaceAddress> addresses_of_host() {
  std::vector<InterfaceAddress> all;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return all;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    const void* bytes = nullptr;
    if (family == AF_INET) bytes = &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
    if (family == AF_INET6) bytes = &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
    char text[INET6_ADDRSTRLEN];
    if (bytes != nullptr && inet_ntop(family, bytes, text, sizeof text) != nullptr)
      all.push_back({one->ifa_name, text});
  }
  freeifaddrs(first);
  return all;
}

Result<InterfaceChoice> choose_interface(std::string_view text, const std::vector<InterfaceAddress>& here,
                                         std::string* why) {
  const std::size_t slash = text.find('/');
  const auto wanted = parse(text.substr(0, slash));
  // Of a scope, say fe80::1%eth0, libfabric knows; other names than of interfaces it may have, too.
  if (!wanted) return InterfaceChoice{.interface = std::string(text), .address = {}};
  unsigned count = wanted->bits();
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (error != std::errc{} || end != digits.data() + digits.size() || count > wanted->bits()) {
      *why = fmt::format("'{}' is no network: expected 0..{} bits behind the slash", text, wanted->bits());
      return Errc::invalid_param;
    }
  }
  for (const InterfaceAddress& one : here) {
    const auto ours = parse(one.address);
    if (ours && ours->starts_as(*wanted, count))
      return InterfaceChoice{.interface = {}, .address = one.address};
  }
  // All of 127.0.0.0/8 is the loopback's, though one of it is listed.
  if (slash == std::string_view::npos && wanted->family == AF_INET && wanted->bytes[0] == 127)
    return InterfaceChoice{.interface = {}, .address = std::string(text)};
  *why = slash == std::string_view::npos
             ? fmt::format("{} is no address of this host; it has: {}", text, list_of(here))
             : fmt::format("this host has no address in {}; it has: {}", text, list_of(here));
  return Errc::invalid_param;
}

}  // namespace orrery::wire
