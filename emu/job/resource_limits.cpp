// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/resource_limits.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

namespace orrery::job {

Result<ResourceLimits> parse_limits(std::string_view text, std::string* why) {
  constexpr std::uint32_t kMost = 1'000'000;
  ResourceLimits limits;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    const bool last = item.size() == text.size();
    text.remove_prefix(last ? text.size() : item.size() + 1);
    const auto equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    const auto at = std::find(kResourceNames.begin(), kResourceNames.end(), name);
    std::uint32_t most = 0;
    bool good = at != kResourceNames.end() && equals != std::string_view::npos && (last || !text.empty());
    if (good) {
      const std::string_view digits = item.substr(equals + 1);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), most);
      good = error == std::errc{} && end == digits.data() + digits.size() && most <= kMost;
    }
    if (!good) {
      *why =
          fmt::format("'{}' is not accepted: expected a list of mdd=N, cq=N, fma=N, ce=N, bte=N with N 0..{}",
                      item, kMost);
      return Errc::invalid_param;
    }
    limits[static_cast<std::size_t>(at - kResourceNames.begin())] = most;
  }
  return limits;
}

}  // namespace orrery::job
