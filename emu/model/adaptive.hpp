// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The adaptive choice of the Aries router (Faanes et al., section III): of two minimal and two
// non-minimal candidates the one with the lightest load, loads of non-minimal ones weighted by a bias.
// The paper names no numbers for the bias and says that it can be tuned; the modes below are this
// model's: load(non-minimal) * 2^shift + add, in packets. Pure.
#pragma once

#include <array>
#include <cstdint>

namespace orrery::model {

struct AdaptiveBias {
  std::uint32_t shift = 1;
  std::uint32_t add = 4;
  friend constexpr bool operator==(const AdaptiveBias&, const AdaptiveBias&) = default;
};
// GNI's four adaptive modes: equal, increasingly minimal (the default is 1), strongly minimal.
inline constexpr std::array<AdaptiveBias, 4> kAdaptiveModes{{{0, 0}, {1, 4}, {2, 16}, {4, 64}}};

inline constexpr int kMinimalCandidates = 2, kNonMinimalCandidates = 2;
using CandidateLoads = std::array<std::uint32_t, kMinimalCandidates + kNonMinimalCandidates>;

constexpr std::uint64_t weighted_load(const CandidateLoads& loads, int candidate, AdaptiveBias bias) {
  if (candidate < kMinimalCandidates) return loads[candidate];
  return (std::uint64_t{loads[candidate]} << bias.shift) + bias.add;
}

// Index of the chosen candidate: 0, 1 minimal; 2, 3 non-minimal. Ties go to the lower index, so a
// quiet network is routed minimally. REQUIRES: shift < 32.
constexpr int choose_adaptive(const CandidateLoads& loads, AdaptiveBias bias) {
  int best = 0;
  for (int i = 1; i < kMinimalCandidates + kNonMinimalCandidates; ++i) {
    if (weighted_load(loads, i, bias) < weighted_load(loads, best, bias)) best = i;
  }
  return best;
}

// What of a port's load is known at the router that chooses, in packets.
struct PortLoad {
  std::uint32_t near_end = 0;    // waiting in this port's own queue
  std::uint32_t far_end = 0;     // estimate of the next input buffer: its size less our credits
  std::uint32_t downstream = 0;  // advertised by the neighbour, a hop's delay old
  constexpr std::uint32_t combined() const { return near_end + far_end + downstream; }
};

}  // namespace orrery::model
