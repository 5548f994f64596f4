// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/routing.hpp"

#include "emu/base/timed_path.hpp"

#include <array>

namespace orrery::model {

namespace {

constexpr std::array<std::string_view, kRoutings> kNames{"adaptive_0", "adaptive_1",     "adaptive_2",
                                                         "adaptive_3", "hashed_minimal", "hashed_non_minimal",
                                                         "in_order"};

constexpr auto kRoutingWords = std::to_array<RoutingWord>({
    {"gni", "PERFORMANCE", 0, Routing::adaptive_0, ""},
    {"gni", "NO_ADAPT", 1, Routing::hashed_minimal, "the hash includes the address"},
    {"gni", "NO_HASH", 2, Routing::adaptive_0, "only with NO_ADAPT does it change the path"},
    {"gni", "IN_ORDER", 3, Routing::in_order, "NO_ADAPT and NO_HASH"},
    {"gni", "NO_RADAPT", 4, Routing::adaptive_0, "responses are not adaptive"},
    {"gni", "NMIN_HASH", 8, Routing::hashed_non_minimal, ""},
    {"gni", "MIN_HASH", 0x10, Routing::hashed_minimal, ""},
    {"gni", "ADAPTIVE1", 0x20, Routing::adaptive_1, ""},
    {"gni", "ADAPTIVE2", 0x40, Routing::adaptive_2, ""},
    {"gni", "ADAPTIVE3", 0x80, Routing::adaptive_3, ""},
    {"gni", "ORDERED_TAIL", 0x100, Routing::adaptive_0, "the last packet follows the others"},
    {"dmapp", "ROUTING_IN_ORDER", -1, Routing::in_order, ""},
    {"dmapp", "ROUTING_DETERMINISTIC", -1, Routing::hashed_non_minimal,
     "on Gemini: hashed over the minimal paths"},
    {"dmapp", "ROUTING_DETERMINISTIC_1", -1, Routing::hashed_minimal, ""},
    {"dmapp", "ROUTING_ADAPTIVE", -1, Routing::adaptive_0, ""},
    {"dmapp", "ROUTING_ADAPTIVE_1", -1, Routing::adaptive_1, ""},
    {"dmapp", "ROUTING_ADAPTIVE_2", -1, Routing::adaptive_2, ""},
    {"dmapp", "ROUTING_ADAPTIVE_3", -1, Routing::adaptive_3, ""},
    {"dmapp", "PI_ORDERING_STRICT", -1, Routing::adaptive_0, "host interface only: no write passes another"},
    {"dmapp", "PI_ORDERING_DEFAULT", -1, Routing::adaptive_0,
     "host interface only: completions may pass writes"},
    {"dmapp", "PI_ORDERING_RELAXED", -1, Routing::adaptive_0, "host interface only: writes may pass writes"},
    {"cci", "CONN_ATTR_RO", -1, Routing::in_order, "acknowledged"},
    {"cci", "CONN_ATTR_RU", -1, Routing::adaptive_0, "acknowledged"},
    {"cci", "CONN_ATTR_UU", -1, Routing::adaptive_0, "not acknowledged"},
    {"portals", "put and get", -1, Routing::in_order, "headers of a pair stay in order"},
});

}  // namespace

std::string_view routing_name(Routing routing) { return kNames[static_cast<std::size_t>(routing)]; }

bool routing_by_name(std::string_view name, Routing* out) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] != name) continue;
    *out = static_cast<Routing>(i);
    return true;
  }
  return false;
}

std::span<const RoutingWord> routing_words() { return kRoutingWords; }

ORRERY_TIMED_PATH Routing routing_of_delivery_mode(std::uint16_t bits) {
  if ((bits & 3) == 3) return Routing::in_order;
  if (bits & 1) return Routing::hashed_minimal;
  if (bits & 0x10) return Routing::hashed_minimal;
  if (bits & 0x08) return Routing::hashed_non_minimal;
  if (bits & 0x80) return Routing::adaptive_3;
  if (bits & 0x40) return Routing::adaptive_2;
  if (bits & 0x20) return Routing::adaptive_1;
  return Routing::adaptive_0;
}

std::string_view network_name(Network network) {
  switch (network) {
    case Network::dragonfly:
      return "dragonfly";
    case Network::gemini_torus:
      return "gemini torus";
    case Network::seastar_torus:
      return "seastar torus";
    case Network::bluegene_torus:
      return "blue gene torus";
    case Network::fat_tree:
      return "quaternary fat tree";
    case Network::crossbar:
      return "crossbar";
  }
  return "?";
}

std::string_view routing_effect(Network network, Routing routing) {
  switch (network) {
    case Network::dragonfly:
      if (is_adaptive(routing))
        return "per packet, least loaded of two minimal and two non-minimal routes, biased";
      if (routing == Routing::hashed_non_minimal) return "one route through a root picked by hash";
      return routing == Routing::in_order ? "one minimal route, hash of source and destination"
                                          : "one minimal route, hash of source, destination and address";
    case Network::gemini_torus:
      if (is_adaptive(routing)) return "per packet, least loaded tile link of the next direction";
      return routing == Routing::in_order ? "one path of tile links, hash of source and destination"
                                          : "one path of tile links, hash that includes the address";
    case Network::seastar_torus:
      return "table-driven direction order, always one path";
    case Network::bluegene_torus:
      return is_adaptive(routing) ? "dynamic: any hinted direction, most free tokens first"
                                  : "deterministic: x, then y, then z on the bubble channel";
    case Network::fat_tree:
      return is_adaptive(routing) ? "adaptive up, deterministic down"
                                  : "up ports by hash, deterministic down";
    case Network::crossbar:
      return "no network";
  }
  return "?";
}

bool keeps_order(Network network, Routing routing) {
  if (network == Network::seastar_torus || network == Network::crossbar) return true;
  if (network == Network::bluegene_torus) return !is_adaptive(routing);
  return routing == Routing::in_order;
}

}  // namespace orrery::model
