// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/hosts/hosts.hpp"

#include "emu/job/host_directory.hpp"
#include "tools/orrery/hosts/agent_message.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace orrery::tool {

namespace {

constexpr std::uint32_t kMostPes = job::HostDirectory::kMaxPes;

// What ssh or another program of that kind may be given: nothing that a shell or an option parser reads.
bool is_host_name(std::string_view name) {
  if (name.empty() || name.front() == '-' || name.size() > 255) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view(".-_@:").find(c) != std::string_view::npos;
  });
}

}  // namespace

std::string parse_hosts(std::string_view text, std::uint32_t pes, std::vector<HostShare>* shares) {
  std::vector<HostShare> found;
  std::set<std::string, std::less<>> names;
  std::uint32_t with_count = 0;
  std::uint64_t sum = 0;
  for (std::string_view rest = text;;) {
    const std::string_view word = rest.substr(0, rest.find(','));
    std::string_view name = word;
    std::string_view count;
    const std::size_t bracket = word.starts_with('[') ? word.find(']') : 0;
    if (bracket == std::string_view::npos) name = {};
    if (const auto colon = word.find(':', bracket == std::string_view::npos ? 0 : bracket);
        colon != std::string_view::npos) {
      name = word.substr(0, colon);
      count = word.substr(colon + 1);
    }
    if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
    if (!is_host_name(name))
      return fmt::format("--hosts {}: '{}' is not a host: expected a name or address, or name:PEs", text,
                         word);
    HostShare share{std::string(name)};
    if (name.size() != word.size() && !word.ends_with(']')) {
      if (!word.starts_with('[') && std::count(word.begin(), word.end(), ':') > 1)
        return fmt::format(
            "--hosts {}: '{}' is not accepted: expected an IPv6 address in brackets, [fd00::1]", text, word);
      const auto number = parse_number(count, kMostPes);
      if (!number || *number == 0)
        return fmt::format("--hosts {}: '{}' is not accepted: expected 1..{} PEs after the colon", text, word,
                           kMostPes);
      share.count = *number;
      ++with_count;
      sum += *number;
    }
    if (!names.insert(share.name).second)
      return fmt::format("--hosts {}: host {} is named twice: expected each once, with name:PEs", text,
                         share.name);
    found.push_back(std::move(share));
    if (word.size() == rest.size()) break;
    rest.remove_prefix(word.size() + 1);
  }
  const auto hosts = static_cast<std::uint32_t>(found.size());
  if (with_count != 0 && with_count != hosts)
    return fmt::format("--hosts {}: expected :PEs behind every host or behind none", text);
  if (with_count != 0 && pes != 0 && sum != pes)
    return fmt::format("--hosts {} names {} PEs, -n {}: expected the same, or one of them alone", text, sum,
                       pes);
  const std::uint64_t all = with_count != 0 ? sum : pes != 0 ? pes : hosts;
  if (all > kMostPes) return fmt::format("--hosts {}: {} PEs: expected at most {}", text, all, kMostPes);
  if (hosts > all)
    return fmt::format("--hosts {}: {} hosts for {} PEs: expected no more hosts than PEs", text, hosts, all);
  std::uint32_t first = 0;
  for (std::uint32_t i = 0; i < hosts; ++i) {
    HostShare& share = found[i];
    // The first ones get one more where it does not come out even.
    if (with_count == 0) {
      const auto total = static_cast<std::uint32_t>(all);
      share.count = total / hosts + (i < total % hosts ? 1 : 0);
    }
    share.first = first;
    first += share.count;
  }
  *shares = std::move(found);
  return {};
}

}  // namespace orrery::tool
