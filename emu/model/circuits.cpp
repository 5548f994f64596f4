// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/circuits.hpp"

#include <algorithm>

namespace orrery::model {

__attribute__((noinline)) CircuitWay::Waits CircuitWay::waits_of(std::int64_t now, std::int64_t data,
                                                                 std::int64_t stands) const {
  const DecayMoment moment = now;
  const auto length = static_cast<double>(data);
  const double of_bytes = length / (static_cast<double>(packet_) * static_cast<double>(kHalfLife.count()));
  // What of its time each link carries the data of circuits that may stand beside this one.
  double busy[kMost];
  for (std::uint32_t i = 0; i < links_; ++i) {
    const std::uint32_t other = at_[i]->last.load(std::memory_order_relaxed) ^ ends_;
    const bool same_end = (other >> 16) == 0 || (other & 0xffff) == 0;
    const auto bytes = static_cast<double>(steady_rate(sums_[i], moment));
    busy[i] = same_end ? 0 : std::min(1.0, bytes * of_bytes);
  }
  // That no link is, if each is `more` times as busy.
  const auto quiet = [&](double more) {
    double all = 1;
    for (std::uint32_t i = 0; i < links_; ++i)
      for (std::uint32_t n = 0; n < stands_for_; ++n) all *= 1 - std::min(1.0, busy[i] * more);
    return all;
  };
  // Others' data waits as well, and keeps all of its links bespoken meanwhile.
  const double behind = (1 - quiet(1 + (1 - quiet(1)) / 2)) / 2 * length;
  const double held = static_cast<double>(stands) + behind;
  double channels = 0;
  for (std::uint32_t i = 0; i < links_; ++i) {
    const double circuits = std::min(1.0, busy[i] * held / length);
    channels += stands_for_ * circuits * circuits / (4 - circuits * circuits) * held;
  }
  return {static_cast<std::int64_t>(channels), static_cast<std::int64_t>(behind)};
}

}  // namespace orrery::model
