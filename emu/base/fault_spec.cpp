// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/fault_spec.hpp"

#include "emu/base/units.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace orrery {

namespace {

constexpr std::string_view kWhen = "a chance 0..1 or @N, the N-th operation of each PE";
constexpr std::string_view kTime = "a time above 0, at most 60 s, such as 5us or 2 ms";
constexpr std::int64_t kLongestDelayNs = 60'000'000'000;
constexpr std::uint32_t kMaxAddress = (1u << 18) - 1;
constexpr std::uint64_t kMaxRank = 1'000'000;

template <typename Number>
bool read_number(std::string_view text, Number* out, std::uint64_t most) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value > most) return false;
  *out = static_cast<Number>(value);
  return true;
}

bool read_when(std::string_view text, FaultWhen* when) {
  if (text.starts_with('@')) {
    return read_number(text.substr(1), &when->operation, UINT64_MAX) && when->operation != 0;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), when->chance);
  return !text.empty() && error == std::errc{} && end == text.data() + text.size() && when->chance >= 0 &&
         when->chance <= 1;
}

// "5us" or "5 us".
bool read_time(std::string_view text, std::int64_t* ns) {
  const auto unit = text.find_first_not_of("0123456789.");
  if (unit == std::string_view::npos || unit == 0) return false;
  const std::string spaced =
      text[unit] == ' ' ? std::string(text) : fmt::format("{} {}", text.substr(0, unit), text.substr(unit));
  const auto time = parse_duration(spaced);
  if (!time.ok()) return false;
  *ns = time.value().count() / 1000;
  return *ns > 0 && *ns <= kLongestDelayNs;
}

}  // namespace

std::optional<FaultSpec> parse_faults(std::string_view text, std::string* why) {
  FaultSpec spec;
  const auto refuse = [&](std::string_view word, std::string_view expected) {
    *why = fmt::format("'{}' is not accepted: expected {}", word, expected);
    return std::nullopt;
  };
  std::vector<std::string_view> named;  // words that may come once
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    // A comma at the end announces a word that is not there.
    if (comma != std::string_view::npos && text.empty()) return refuse("", kFaultWords);
    const auto equals = word.find('=');
    if (equals == std::string_view::npos) return refuse(word, kFaultWords);
    const std::string_view name = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    if (name != "dead" && name != "pe") {
      if (std::find(named.begin(), named.end(), name) != named.end())
        return refuse(word, fmt::format("{} once", name));
      named.push_back(name);
    }
    if (name == "drop" || name == "corrupt" || name == "revoke" || name == "link") {
      FaultWhen& when = name == "drop"      ? spec.drop
                        : name == "corrupt" ? spec.corrupt
                        : name == "revoke"  ? spec.revoke
                                            : spec.link;
      when = {};
      if (!read_when(value, &when)) return refuse(word, fmt::format("{}=WHEN, {}", name, kWhen));
    } else if (name == "delay") {
      const auto colon = value.find(':');
      spec.delay = {};
      if (colon == std::string_view::npos || !read_when(value.substr(0, colon), &spec.delay) ||
          !read_time(value.substr(colon + 1), &spec.delay_ns))
        return refuse(word, fmt::format("delay=WHEN:TIME, {}, and {}", kWhen, kTime));
    } else if (name == "dead") {
      const auto at = value.find('@');
      DeadNode node;
      const bool good = read_number(value.substr(0, at), &node.nic_address, kMaxAddress) &&
                        (at == std::string_view::npos ||
                         (read_number(value.substr(at + 1), &node.from, UINT64_MAX) && node.from != 0));
      if (!good) {
        return refuse(word,
                      fmt::format("dead=ADDRESS or dead=ADDRESS@N, a NIC address 0..{} and the operation "
                                  "of each PE from which on it is dead",
                                  kMaxAddress));
      }
      spec.dead.push_back(node);
    } else if (name == "seed") {
      if (!read_number(value, &spec.seed, UINT64_MAX))
        return refuse(word, "seed=NUMBER, 0..18446744073709551615");
    } else if (name == "pe") {
      std::int32_t rank = 0;
      if (!read_number(value, &rank, kMaxRank)) return refuse(word, fmt::format("pe=RANK, 0..{}", kMaxRank));
      spec.pes.push_back(rank);
    } else {
      return refuse(word, kFaultWords);
    }
  }
  return spec;
}

}  // namespace orrery
