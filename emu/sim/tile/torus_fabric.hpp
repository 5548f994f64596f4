// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/model/torus.hpp"
#include "emu/sim/tile/tile_router.hpp"
#include "emu/sim/tile/torus_detours.hpp"
#include "emu/sim/tile/torus_grid.hpp"

namespace orrery::sim {

// What tells a Gemini torus from a SeaStar torus. Times in tenths of a nanosecond.
struct TorusTiming {
  std::uint32_t packet_payload = 64;
  std::uint32_t header_flits = 8;  // of a request beside its data
  std::uint32_t data_unit = 8;     // bytes that data_flits carry
  std::uint32_t data_flits = 3;
  double flit_ticks = 25.6;  // of one link
  Tick hop = 1050;
  std::uint32_t buffer_flits = 512;  // one VC of one link
  std::uint32_t grain = 1;           // machine packets that travel as one
  bool adaptive = true;              // among parallel links by load; else hashed
  NicCost nic;
  LinkErrors errors;
};

// A torus of Gemini or SeaStar routers for TileRouter: direction order X+ Y+ Z+ X- Y- Z-, a dateline pair
// of VCs for each of two classes (requests, responses), parallel links by load or by hash. Round routers that
// have lost a direction packets go by the tables of torus_detours.hpp, in the same order by the same VCs.
//
// Nodes are numbered by router: node = router * nics + nic, router = x + X (y + Y z) in the router grid.
class TorusFabric {
 public:
  static constexpr int kVcs = 4;
  static constexpr std::uint32_t kNodeMask = ~std::uint32_t{0};

  TorusFabric(const model::Torus& torus, const TorusTiming& timing, TorusDetours detours = {})
      : torus_(torus), timing_(timing), grid_(torus.grid()), detours_(std::move(detours)) {
    for (int d = 0; d < 6; ++d) {
      const auto direction = static_cast<model::Direction>(d);
      offset_[static_cast<std::size_t>(d)] = torus.link(0, direction);
      parallel_[static_cast<std::size_t>(d)] = torus.parallel(direction);
    }
    for (std::uint32_t d = 0; d < 3; ++d)
      if (!torus.shape().closed[d]) open_ |= 1u << d;
  }

  std::uint32_t sites() const { return torus_.routers(); }
  std::uint32_t ports() const { return torus_.links_per_router(); }
  std::uint32_t nics() const { return torus_.shape().nodes_per_router; }
  std::uint32_t grain() const { return grid_.side(0) * grid_.side(1); }
  Tick advertise_every() const { return 0; }
  Wire wire(Node site, std::uint32_t port) const {
    const model::LinkId link = site * ports() + port;
    if (!torus_.has_link(link)) return {};
    const model::Direction d = torus_.direction_of(link);
    const Node peer = torus_.neighbour(site, d);
    const model::LinkId back = torus_.link(peer, model::opposite(d), torus_.parallel_index(link));
    return {peer, static_cast<std::uint8_t>(back % ports())};
  }
  Tick serialise(std::uint32_t, std::uint32_t flits) const {
    return static_cast<Tick>(flits * timing_.flit_ticks + 0.5);
  }
  Tick latency(std::uint32_t) const { return timing_.hop; }
  std::uint32_t buffer(std::uint32_t) const { return timing_.buffer_flits; }
  NicCost nic() const { return timing_.nic; }
  LinkErrors errors() const { return timing_.errors; }
  std::uint32_t packets_in(std::uint32_t payload) const {
    return payload == 0 ? 1 : (payload + timing_.packet_payload - 1) / timing_.packet_payload;
  }
  std::uint32_t flits_for(std::uint32_t payload) const {
    return packets_in(payload) * timing_.header_flits +
           (payload + timing_.data_unit - 1) / timing_.data_unit * timing_.data_flits;
  }

  bool has_new_tables() const { return detours_.needed(); }
  void use_new_tables() { detour_ = true; }

  template <typename View>
  Hop route(const View& view, Random& random, Packet& packet) const {
    const TorusGrid::Packed here = grid_.coordinates(view.site());
    const Node target = packet.dst / nics();
    const TorusGrid::Packed to = grid_.coordinates(target);
    if (!(packet.aux & kStarted)) {
      packet.aux = static_cast<std::uint8_t>(
          kStarted | grid_.hints(here, to, static_cast<std::uint32_t>(random.next() >> 60), open_));
      if (detour_) {
        if (const TorusDetours::Way* way = detours_.find(view.site(), target)) {
          packet.aux = static_cast<std::uint8_t>(kStarted | way->hints);
          packet.flags |= kNonMinimal;
        }
      }
    }
    const unsigned hints = packet.aux & 63u;
    const int response = packet.flags & kResponse ? 1 : 0;
    if (hints == 0) return {ports() + packet.dst % nics(), static_cast<std::uint8_t>(2 * response)};
    const int d = std::countr_zero(hints);
    const auto vc = static_cast<std::uint8_t>(2 * response + (packet.aux & kCrossed ? 1 : 0));
    const TorusGrid::Packed next = grid_.step_packed(here, d);
    const TorusGrid::Packed turn =
        (packet.flags & kNonMinimal) && !minus_of(d) ? detours_.find(packet.src / nics(), target)->turn : to;
    if (TorusGrid::at(next, dim_of(d)) == TorusGrid::at(turn, dim_of(d))) {
      packet.aux = static_cast<std::uint8_t>(packet.aux & ~(1u << d) & ~kCrossed);
    } else if (grid_.wraps(here, d)) {
      packet.aux |= kCrossed;
    }
    const std::uint32_t first = offset_[static_cast<std::size_t>(d)],
                        count = parallel_[static_cast<std::size_t>(d)];
    std::uint32_t k = count == 1 ? 0
                      : timing_.adaptive && !(packet.flags & kDeterministic)
                          ? random.below(count)
                          : static_cast<std::uint32_t>(model::route_hash(packet.src, packet.dst) % count);
    if (count > 1 && timing_.adaptive && !(packet.flags & kDeterministic)) {
      std::uint32_t best = ~0u;
      const std::uint32_t start = k;
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t try_k = (start + i) % count;
        if (!view.in_service(first + try_k)) continue;
        const std::uint32_t load = view.load(first + try_k);
        if (load < best) best = load, k = try_k;
      }
    } else {
      // A lost link's packets go by the next of its parallels. If all are lost new tables are under way.
      for (std::uint32_t i = 0; i < count && !view.in_service(first + k); ++i) k = k + 1 == count ? 0 : k + 1;
    }
    return {first + k, vc};
  }

 private:
  static constexpr std::uint8_t kStarted = 0x80, kCrossed = 0x40;
  model::Torus torus_;
  TorusTiming timing_;
  TorusGrid grid_;
  TorusDetours detours_;
  bool detour_ = false;
  std::array<std::uint32_t, 6> offset_{}, parallel_{};
  std::uint32_t open_ = 0;
};

}  // namespace orrery::sim
