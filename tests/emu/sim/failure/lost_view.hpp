// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// For tests of networks that have lost something: packets followed by a fabric's routes, and runs in short.
#pragma once

#include "emu/sim/failure/losses.hpp"
#include "emu/sim/scene/simulate.hpp"
#include "emu/sim/tile/tile_router.hpp"
#include "tests/emu/sim/bgl/channel_chains.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace orrery::sim {

// What a fabric sees of a network in which links are lost; loads are drawn.
class LostView {
 public:
  template <typename Fabric>
  LostView(const Fabric& fabric, const std::vector<FailedLink>& lost, std::uint64_t seed)
      : ports_(fabric.ports()), random_(seed), there_(std::size_t{fabric.sites()} * ports_) {
    for (Node site = 0; site < fabric.sites(); ++site)
      for (std::uint32_t port = 0; port < ports_; ++port)
        there_[std::size_t{site} * ports_ + port] = fabric.wire(site, port).peer != Wire::kNowhere;
    for (const FailedLink& link : lost) {
      const Wire wire = fabric.wire(link.router, link.port);
      there_[std::size_t{link.router} * ports_ + link.port] = false;
      there_[std::size_t{wire.peer} * ports_ + wire.back] = false;
    }
  }
  void move_to(Node site) { site_ = site; }
  Node site() const { return site_; }
  std::uint32_t load(std::uint32_t) const { return random_.below(1000); }
  std::uint32_t advertised(Node, std::uint32_t) const { return random_.below(1000); }
  bool in_service(std::uint32_t port) const { return in_service(site_, port); }
  bool in_service(Node site, std::uint32_t port) const { return there_[std::size_t{site} * ports_ + port]; }
  bool all_in_service() const { return false; }

 private:
  std::uint32_t ports_;
  mutable Random random_;
  std::vector<bool> there_;
  Node site_ = 0;
};

// Follows a packet to its destination; links it takes are in service, and each channel that it holds waits
// for the next. Returns its links, 1000 if it never arrives or takes a lost link.
template <typename Fabric>
int follow(const Fabric& fabric, LostView& view, Random& random, Node from, Node to, std::uint8_t flags,
           ChannelChains* chains) {
  Packet packet;
  packet.src = from;
  packet.dst = to;
  packet.flags = flags;
  Node at = from / fabric.nics();
  std::size_t holds = ChannelChains::kNone;
  for (int links = 0; links < 100; ++links) {
    view.move_to(at);
    const Hop hop = fabric.route(view, random, packet);
    if (hop.port >= fabric.ports()) return at == to / fabric.nics() ? links : 1000;
    if (!view.in_service(hop.port)) return 1000;
    const std::size_t next = (std::size_t{at} * fabric.ports() + hop.port) * Fabric::kVcs + hop.vc;
    chains->wait(holds, next);
    holds = next;
    at = fabric.wire(at, hop.port).peer;
    ++packet.hops;
  }
  return 1000;
}

inline RunSpec all_to_all(const char* machine, const char* nodes) {
  RunSpec spec;
  spec.machine = machine;
  spec.nodes = nodes;
  spec.bytes = 256;
  spec.grain = machine == std::string("aries") ? 4 : 1;
  spec.keep_link_busy = true;
  return spec;
}

inline SimResult run(const RunSpec& spec) {
  SimResult result;
  EXPECT_EQ(simulate(spec, &result).why, "");
  return result;
}

}  // namespace orrery::sim
