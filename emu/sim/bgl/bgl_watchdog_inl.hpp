// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What bgl_router.hpp tells about itself: where packets are blocked, and why it stands still.
#pragma once

#include "emu/sim/bgl/bgl_router.hpp"

#include <fmt/format.h>

namespace orrery::sim {

// Counts the VCs to which tokens returned since the last arbitration while a head was blocked that wants
// their direction (no VC of any of its directions had tokens for it), and those of them whose tokens let at
// least one such head move: Figure 9's "frees at least one previously blocked packet to move".
template <typename E, int S>
void BglRouter<E, S>::count_unblocking(Partition& part, Node node) {
  const Hot& hot = hot_[node];
  const Queues& queues = queues_[node];
  const auto& before = seen_[node].tokens;
  if (std::memcmp(before, hot.tokens, sizeof(hot.tokens)) == 0) return;
  unsigned open = 0;  // directions with a dynamic VC to be had before
  std::uint64_t heads = 0;
  for (int d = 0; d < kPorts; ++d) {
    heads |= hot.want[d];
    for (std::uint32_t v = 0; v < config_.dynamic_vcs; ++v)
      if (before[d][v] >= full_) open |= 1u << d;
  }
  std::uint64_t freed = 0;  // bit d * S + vc
  unsigned awaited = 0;     // directions that a blocked head wants
  for (; heads != 0; heads &= heads - 1) {
    const int slot = std::countr_zero(heads);
    const bool fixed = hot.fixed >> slot & 1;
    if (!fixed && (hot.hints[slot] & open)) continue;
    const int ordered = ordered_direction(hot.hints[slot]);
    const int escape = escape_channel(hot, queues, part, slot, ordered);
    const std::uint32_t need = escape_need(slot, ordered, escape);
    if (before[ordered][escape] >= need) continue;
    awaited |= fixed ? 1u << ordered : hot.hints[slot];
    if (hot.tokens[ordered][escape] >= need) freed |= std::uint64_t{1} << (ordered * S + escape);
    if (fixed) continue;
    for (unsigned hints = hot.hints[slot]; hints != 0; hints &= hints - 1) {
      const int d = std::countr_zero(hints);
      for (int v = 0; v < static_cast<int>(config_.dynamic_vcs); ++v)
        if (hot.tokens[d][v] >= full_) freed |= std::uint64_t{1} << (d * S + v);
    }
  }
  part.counters().unblocking += static_cast<unsigned>(std::popcount(freed));
  for (; awaited != 0; awaited &= awaited - 1) {
    const int d = std::countr_zero(awaited);
    for (int v = 0; v < priority_vc_; ++v)
      part.counters().blocked_credits += hot.tokens[d][v] != before[d][v];
  }
}

template <typename E, int S>
void BglRouter<E, S>::look(std::vector<VcUse>* vcs) const {
  const auto count = static_cast<std::size_t>(priority_vc_) + 1;
  vcs->resize(count);
  for (const Hot& hot : hot_)
    for (unsigned links = hot.links; links != 0; links &= links - 1) {
      const auto& tokens = hot.tokens[std::countr_zero(links)];
      for (std::size_t v = 0; v < count; ++v) (*vcs)[v].add(capacity_[v] - tokens[v], capacity_[v]);
    }
}

template <typename E, int S>
std::vector<std::string> BglRouter<E, S>::find_cycle(
    const std::vector<std::unique_ptr<Partition>>& parts) const {
  static constexpr const char* kNames[kPorts] = {"x+", "y+", "z+", "x-", "y-", "z-"};
  const auto packet_of = [&](Node node, int slot) -> const Packet* {
    for (auto& part : parts)
      if (part->owns(node))
        if (const std::uint32_t first = head(*part, queues_[node], slot); first != kNone)
          return &part->pool()[first];
    return nullptr;
  };
  std::vector<std::uint32_t> seen(std::size_t{sites()} * kInjection, 0);
  std::uint32_t walk = 0;
  for (Node start = 0; start < sites(); ++start)
    for (int first = 0; first < kInjection; ++first) {
      ++walk;
      Node node = start;
      int slot = first;
      std::vector<std::pair<Node, int>> path;
      while (const Packet* packet = packet_of(node, slot)) {
        if (packet->hints == 0 || (hot_[node].moving >> slot & 1)) break;
        std::uint32_t& stamp = seen[std::size_t{node} * kInjection + static_cast<std::size_t>(slot)];
        if (stamp == walk) {  // closed: the cycle is the path from this channel on
          std::vector<std::string> names;
          bool inside = false;
          for (auto [n, s] : path) {
            inside = inside || (n == node && s == slot);
            if (!inside) continue;
            const auto c = hot_[n].coordinates;
            const int v = s % S;
            names.push_back(fmt::format(
                "({},{},{}) {} {}", TorusGrid::at(c, 0), TorusGrid::at(c, 1), TorusGrid::at(c, 2),
                kNames[s / S],
                v < static_cast<int>(config_.dynamic_vcs) ? fmt::format("dynamic {}", v)
                : v == priority_vc_                       ? std::string("priority")
                                    : fmt::format("escape {}", v - static_cast<int>(config_.dynamic_vcs))));
          }
          return names;
        }
        if (stamp != 0) break;  // walked before, without success
        stamp = walk;
        path.emplace_back(node, slot);
        const int d = ordered_direction(packet->hints);
        const int vc = packet->flags & kPriority ? priority_vc_ : escape_vc(*packet, d);
        node = grid_.step(node, hot_[node].coordinates, d);
        slot = d * S + vc;
      }
    }
  return {};
}

}  // namespace orrery::sim
