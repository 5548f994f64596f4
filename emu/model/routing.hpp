// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Routing modes, and the one table that says which mode each API's own word asks for and what each
// machine does with it. Words are given without the APIs' prefixes; numbers are those of the APIs'
// published constants.
#pragma once

#include "emu/model/adaptive.hpp"
#include "emu/model/route.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace orrery::model {

enum class Routing : std::uint8_t {
  adaptive_0,  // per packet, no bias: the default of the APIs
  adaptive_1,  // increasingly minimal
  adaptive_2,
  adaptive_3,          // strongly minimal
  hashed_minimal,      // one minimal path by hash of source, destination and address
  hashed_non_minimal,  // one path through a hashed root
  in_order,            // one minimal path per source and destination: packets arrive in order
};
inline constexpr int kRoutings = 7;

constexpr bool is_adaptive(Routing r) { return r <= Routing::adaptive_3; }
constexpr AdaptiveBias bias_of(Routing r) {
  return kAdaptiveModes[is_adaptive(r) ? static_cast<std::size_t>(r) : 0];
}
// What a path's choices are drawn from: the two ends, and in all modes but in_order also the seed, which
// stands for the address that the others hash or the moment that adaptive ones see.
constexpr std::uint64_t path_seed(Routing routing, std::uint64_t seed, NodeId from, NodeId to) {
  const std::uint64_t salt = routing == Routing::in_order ? 0 : seed * 0x9e3779b97f4a7c15u;
  return mix64((std::uint64_t{from} << 32 | to) ^ salt);
}
std::string_view routing_name(Routing routing);
bool routing_by_name(std::string_view name, Routing* out);

struct RoutingWord {
  std::string_view api;   // "gni", "dmapp", "cci", "portals"
  std::string_view word;  // the API's word
  std::int32_t value;     // its number; -1 where the API's numbers are not public
  Routing routing;
  std::string_view effect;  // what else the word asks for
};
std::span<const RoutingWord> routing_words();

// The mode of a GNI delivery-mode bit set (0 performance, 1 no adapt, 2 no hash, 8 non-minimal hash,
// 0x10 minimal hash, 0x20..0x80 adaptive 1..3). Where bits disagree, the more ordered one wins; 4 (no
// adaptive response) and 0x100 (ordered tail) do not change the request's mode.
Routing routing_of_delivery_mode(std::uint16_t bits);

enum class Network : std::uint8_t {
  dragonfly,
  gemini_torus,
  seastar_torus,
  bluegene_torus,
  fat_tree,
  crossbar
};
std::string_view network_name(Network network);
// What the machine does when asked for the mode.
std::string_view routing_effect(Network network, Routing routing);
// Whether packets of one pair stay in order under the mode.
bool keeps_order(Network network, Routing routing);

}  // namespace orrery::model
