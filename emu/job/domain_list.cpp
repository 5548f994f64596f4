// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/domain_list.hpp"

#include "emu/job/random.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace orrery::job {

namespace {

// What clients add to a cookie, at the most: one to the last of the list, and the next library one to that.
constexpr std::uint32_t kMostAdded = 2;

std::vector<std::uint32_t> parse_list(const char* list, std::uint32_t most) {
  std::vector<std::uint32_t> numbers;
  std::string_view text = list == nullptr ? "" : list;
  while (!text.empty()) {
    const auto item = text.substr(0, text.find(':'));
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), number);
    if (error != std::errc{} || end != item.data() + item.size() || number > most) break;
    numbers.push_back(number);
    text.remove_prefix(std::min(item.size() + 1, text.size()));
  }
  return numbers;
}

}  // namespace

std::vector<HostDirectory::Domain> parse_domain_list(const char* ptags, const char* cookies) {
  const auto tags = parse_list(ptags, UINT8_MAX);
  const auto keys = parse_list(cookies, UINT32_MAX);
  std::vector<HostDirectory::Domain> domains;
  for (std::size_t i = 0; i < std::min(tags.size(), keys.size()); ++i) {
    domains.push_back({static_cast<std::uint8_t>(tags[i]), keys[i]});
  }
  return domains;
}

namespace {
std::vector<HostDirectory::Domain> domains_from(std::uint64_t random) {
  // Tags 10..209: small ones belong to the system. Cookies below 2^31, also with what a client adds.
  const auto ptag = static_cast<std::uint8_t>(10 + random % 200);
  const auto cookie = static_cast<std::uint32_t>(1 + (random >> 32) % 0x7ffffff0u);
  return {{ptag, cookie}, {static_cast<std::uint8_t>(ptag + 1), cookie + 1}};
}
}  // namespace

std::vector<HostDirectory::Domain> make_domains() { return domains_from(random_nonzero()); }

std::vector<HostDirectory::Domain> domains_of(std::string_view identity) {
  std::uint64_t hash = 14695981039346656037ull;  // FNV-1a, then mixed: its high half alone is weak
  for (const char c : identity) hash = (hash ^ static_cast<std::uint8_t>(c)) * 1099511628211ull;
  hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdull;
  return domains_from(hash ^ hash >> 29);
}

Status declare_domains(HostDirectory& directory, const std::vector<HostDirectory::Domain>& domains) {
  for (const auto& domain : domains) {
    const auto declared = directory.declare_domain(domain.ptag, domain.cookie);
    if (!declared.ok()) return declared.code();
  }
  if (domains.empty()) return {};
  const std::size_t count = std::min<std::size_t>(domains.size(), 2);
  const std::uint32_t last = domains[count - 1].cookie;
  const auto declare = [&](std::size_t i, std::uint32_t more) -> Status {
    if (more > UINT32_MAX - last) return {};
    return directory.declare_domain(domains[i].ptag, last + more).status();
  };
  if (const Status next = declare(0, 0); !next.ok()) return next;
  for (std::uint32_t more = 1; more <= kMostAdded; ++more) {
    for (std::size_t i = 0; i < count; ++i) {
      if (const Status added = declare(i, more); !added.ok()) return added;
    }
  }
  return {};
}

DomainVariables domain_variables(const std::vector<HostDirectory::Domain>& domains,
                                 std::uint32_t nic_address) {
  DomainVariables variables;
  for (const auto& domain : domains) {
    const char* colon = variables.ptag.empty() ? "" : ":";
    variables.ptag += fmt::format("{}{}", colon, domain.ptag);
    variables.cookie += fmt::format("{}{}", colon, domain.cookie);
    variables.dev_id += fmt::format("{}0", colon);
    variables.loc_addr += fmt::format("{}{}", colon, nic_address);
  }
  return variables;
}

}  // namespace orrery::job
