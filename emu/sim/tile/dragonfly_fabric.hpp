// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/model/dragonfly.hpp"
#include "emu/sim/tile/dragonfly_detours.hpp"
#include "emu/sim/tile/tile_router.hpp"

#include <bit>
#include <vector>

namespace orrery::sim {

enum class AriesRouting : std::uint8_t {
  ordered,           // minimal, hashed by source and destination
  minimal,           // minimal, each packet its own random choice
  minimal_adaptive,  // minimal, the less loaded of two choices
  valiant,           // by way of a random router
  adaptive,          // two minimal and two non-minimal candidates, the lightest
};

// How adaptive routing weighs: non-minimal is taken if minimal > (non-minimal << shift) + bias.
struct AriesBias {
  std::uint32_t shift = 1;
  std::uint32_t bias = 4 * 14;  // phits; four full requests
};

// Numbers of the Aries network. Times in tenths of a nanosecond. Sources: Faanes et al. (SC 2012);
// what the paper leaves silent is ours.
struct AriesTiming {
  // 6-byte phits, 90 % of a link's time left by link-level framing: 5.25 and 4.6875 GB/s.
  double electrical_phit = 10 * 6 / (5.25 * 0.9);
  double optical_phit = 10 * 6 / (4.6875 * 0.9);
  std::uint32_t header_phits = 3, word = 6, word_phits = 1;  // of a request: 14 phits for 64 bytes
  Tick electrical_hop = 1000;                                // "approximately 100 ns" a hop
  Tick optical_hop = 2500;                                   // ... and 30 m of cable
  std::uint32_t electrical_buffer = 8192 / 6;
  std::uint32_t optical_buffer = 16384 / 6;
  std::uint32_t grain = 1;  // 64-byte packets that travel as one
  AriesRouting routing = AriesRouting::adaptive;
  AriesBias bias;
  NicCost nic{.request_per_byte = 1.0,  // 10 GB/s of payload
              .response = 21,           // what symmetric traffic loses: 64 B / 7.5 GB/s - 64 B / 10 GB/s
              .eject_per_byte = 1.0,
              .latency_in = 500,
              .latency_out = 500,
              .outstanding = 1024,
              .inject_flits = 1024,
              .response_flits = 1};
  LinkErrors errors{.flit_bits = 48};
};

// The Cascade dragonfly for TileRouter.
// A green link that is lost is gone round by a hub of its chassis, a router that is lost by a column of its
// group (dragonfly_detours.hpp).
// Virtual channel of a hop: blue links crossed before + 1 past the root; four for requests, four for
// responses, which are routed apart. Node numbers as emu/model's Dragonfly: router * 4 + nic.
class DragonflyFabric {
 public:
  static constexpr int kVcs = 8;
  static constexpr std::uint32_t kNodeMask = (1u << 17) - 1;

  DragonflyFabric(const model::Dragonfly& dragonfly, const AriesTiming& timing,
                  DragonflyDetours detours = {});

  std::uint32_t sites() const { return dragonfly_.routers(); }
  std::uint32_t ports() const { return model::Dragonfly::kPorts; }
  std::uint32_t nics() const { return model::Dragonfly::kNics; }
  // A group reads its own routers' advertised loads: it stays whole.
  std::uint32_t grain() const {
    return sites() % model::Dragonfly::kRoutersPerGroup == 0 ? model::Dragonfly::kRoutersPerGroup : sites();
  }
  Tick advertise_every() const { return 1000; }
  Wire wire(Node site, std::uint32_t port) const { return wires_[std::size_t{site} * ports() + port]; }
  Tick serialise(std::uint32_t port, std::uint32_t flits) const {
    return static_cast<Tick>(flits * (blue(port) ? timing_.optical_phit : timing_.electrical_phit) + 0.5);
  }
  Tick latency(std::uint32_t port) const { return blue(port) ? timing_.optical_hop : timing_.electrical_hop; }
  std::uint32_t buffer(std::uint32_t port) const {
    return blue(port) ? timing_.optical_buffer : timing_.electrical_buffer;
  }
  NicCost nic() const { return timing_.nic; }
  LinkErrors errors() const { return timing_.errors; }
  std::uint32_t packets_in(std::uint32_t payload) const { return payload == 0 ? 1 : (payload + 63) / 64; }
  std::uint32_t flits_for(std::uint32_t payload) const {
    const auto one = [&](std::uint32_t bytes) {
      return timing_.header_phits + (bytes + timing_.word - 1) / timing_.word * timing_.word_phits;
    };
    return payload / 64 * one(64) + (payload % 64 != 0 ? one(payload % 64) : 0);
  }

  bool has_new_tables() const { return detours_.needed(); }
  void use_new_tables() { detour_ = true; }

  template <typename View>
  Hop route(const View& view, Random& random, Packet& packet) const {
    const Node here = view.site();
    const Node target = (packet.dst & kNodeMask) / nics();
    if (!(packet.aux & kDecided)) decide(view, random, packet, here, target);
    if ((packet.flags & kNonMinimal) && !(packet.aux & kPast) && here == packet.src >> 17) {
      packet.aux = static_cast<std::uint8_t>((packet.aux | kPast) & ~kChosen);
    }
    const int vc_class = packet.flags & kResponse ? 4 : 0;
    const Node aim = (packet.flags & kNonMinimal) && !(packet.aux & kPast) ? packet.src >> 17 : target;
    const auto vc =
        static_cast<std::uint8_t>(vc_class + (packet.aux & kBlues) + (packet.aux & kPast ? 1 : 0));
    if (aim == here)
      return {ports() + (packet.dst & kNodeMask) % nics(), static_cast<std::uint8_t>(vc_class)};
    const Node group = here / kGroup;
    if (aim / kGroup == group) return {within(view, random, here, aim), vc};
    if (!(packet.aux & kChosen)) choose_blue(view, random, packet, here, aim);
    const std::uint32_t slot = packet.dst >> 17;  // local router * 10 + blue port
    const Node owner = group * kGroup + slot / model::Dragonfly::kBlue;
    if (owner != here) return {within(view, random, here, owner), vc};
    packet.aux = static_cast<std::uint8_t>((packet.aux + 1) & ~kChosen);
    return {kFirstBlue + slot % model::Dragonfly::kBlue, vc};
  }

 private:
  static constexpr std::uint32_t kGroup = model::Dragonfly::kRoutersPerGroup;
  static constexpr std::uint32_t kFirstBlue = model::Dragonfly::kGreen + model::Dragonfly::kBlack;
  static constexpr std::uint32_t kByBlack = ~0u;
  static constexpr std::uint8_t kBlues = 3, kPast = 4, kChosen = 8, kDecided = 16;

  static bool blue(std::uint32_t port) { return port >= kFirstBlue; }
  std::uint32_t port_of(model::LinkId link) const { return link % ports(); }
  // First link of the way to `aim` in the same group: green, then black, of its copies the least loaded.
  template <typename View>
  std::uint32_t within(const View& view, Random& random, Node here, Node aim) const {
    const std::uint32_t slot = aim % model::Dragonfly::kSlots;
    if (here % model::Dragonfly::kSlots != slot) {
      const std::uint32_t port = port_of(dragonfly_.green(here, slot));
      if (!detour_ || view.in_service(port)) [[likely]]
        return port;
      if (const std::uint32_t round = way_round(view, random, here, aim); round != kByBlack) return round;
    }
    const std::uint32_t first = port_of(dragonfly_.black(here, aim % kGroup / model::Dragonfly::kSlots, 0));
    std::uint32_t best = ~0u, port = first;
    const std::uint32_t start = random.below(model::Dragonfly::kBlackPerPeer);
    for (std::uint32_t i = 0; i < model::Dragonfly::kBlackPerPeer; ++i) {
      const std::uint32_t p = first + (start + i) % model::Dragonfly::kBlackPerPeer;
      if (const std::uint32_t load = view.load(p); view.in_service(p) && load < best) best = load, port = p;
    }
    return port;
  }
  // The green link to go by where that to the slot of `aim` is lost: to a hub or to a column; or in a column
  // by a black link.
  template <typename View>
  [[gnu::cold, gnu::noinline]] std::uint32_t way_round(const View& view, Random& random, Node here,
                                                       Node aim) const {
    const Node chassis = here / model::Dragonfly::kSlots;
    if (!detours_.dead(chassis * model::Dragonfly::kSlots + aim % model::Dragonfly::kSlots))
      return to_one_of(view, random, here, detours_.hubs(chassis));
    const std::uint16_t columns = detours_.columns(chassis, aim / model::Dragonfly::kSlots);
    if (columns >> here % model::Dragonfly::kSlots & 1) return kByBlack;
    return to_one_of(view, random, here, columns);
  }
  // The green link to one of these slots of the chassis, the least loaded.
  template <typename View>
  std::uint32_t to_one_of(const View& view, Random& random, Node here, std::uint16_t slots) const {
    std::uint32_t best = ~0u, port = 0;
    const int turn = static_cast<int>(random.below(model::Dragonfly::kSlots));
    for (slots = std::rotl(slots, turn); slots != 0;
         slots = static_cast<std::uint16_t>(slots & (slots - 1))) {
      const auto slot =
          static_cast<std::uint32_t>(std::countr_zero(slots) + 16 - turn) % model::Dragonfly::kSlots;
      const std::uint32_t p = port_of(dragonfly_.green(here, slot));
      if (const std::uint32_t load = view.load(p); load < best) best = load, port = p;
    }
    return port;
  }
  std::uint32_t blue_slot(Node group, Node to_group, std::uint32_t index) const {
    const model::LinkId link = dragonfly_.blue(group, to_group, index);
    return link / ports() % kGroup * model::Dragonfly::kBlue + port_of(link) - kFirstBlue;
  }
  // Load of the way over one blue link: of the first link of the way there, and of the blue link itself
  // as its router told.
  template <typename View>
  std::uint32_t blue_load(const View& view, Random& random, Node here, std::uint32_t slot) const {
    const Node owner = here / kGroup * kGroup + slot / model::Dragonfly::kBlue;
    const std::uint32_t port = kFirstBlue + slot % model::Dragonfly::kBlue;
    if (owner == here) return view.load(port);
    return view.load(within(view, random, here, owner)) + view.advertised(owner, port);
  }
  template <typename View>
  static bool whole(const View& view, Node group, std::uint32_t slot) {
    if (view.all_in_service()) return true;
    const Node owner = group * kGroup + slot / model::Dragonfly::kBlue;
    return view.in_service(owner, kFirstBlue + slot % model::Dragonfly::kBlue);
  }
  // One random choice among the blue links in service to the group of `aim`. The halves of a non-minimal
  // route take one of the router at hand where it has one, as Dragonfly::valiant() does and for its reason.
  template <typename View>
  std::uint32_t any_blue(const View& view, Random& random, Node here, Node aim, bool half) const {
    const Node group = here / kGroup, to = aim / kGroup;
    if (half && dragonfly_.own_blue_first()) {
      model::Choices choices(random.next());
      const std::uint32_t slot = blue_slot(group, to, dragonfly_.own_blue(here, aim, &choices));
      if (whole(view, group, slot)) return slot;
    }
    for (;;) {
      const std::uint32_t slot = blue_slot(group, to, random.below(dragonfly_.links_per_bundle()));
      if (whole(view, group, slot)) return slot;
    }
  }
  // The choice that packets of one source and destination have in common: of lost links the next.
  template <typename View>
  std::uint32_t hashed_blue(const View& view, const Packet& packet, Node here, Node aim) const {
    const std::uint32_t links = dragonfly_.links_per_bundle();
    for (std::uint64_t i = model::route_hash(packet.src & kNodeMask, packet.dst & kNodeMask);; ++i) {
      const std::uint32_t slot =
          blue_slot(here / kGroup, aim / kGroup, static_cast<std::uint32_t>(i % links));
      if (whole(view, here / kGroup, slot)) return slot;
    }
  }
  // Load of the way to `aim` by any_blue(); the choice goes to `slot`.
  template <typename View>
  std::uint32_t way_load(const View& view, Random& random, Node here, Node aim, bool half,
                         std::uint32_t* slot) const {
    if (aim == here) return 0;
    if (aim / kGroup == here / kGroup) return view.load(within(view, random, here, aim));
    *slot = any_blue(view, random, here, aim, half);
    return blue_load(view, random, here, *slot);
  }
  static void set_slot(Packet& packet, std::uint32_t slot) {
    packet.dst = (packet.dst & kNodeMask) | slot << 17;
    packet.aux |= kChosen;
  }
  template <typename View>
  void choose_blue(const View& view, Random& random, Packet& packet, Node here, Node aim) const {
    if (timing_.routing == AriesRouting::ordered || packet.flags & kDeterministic)
      return set_slot(packet, hashed_blue(view, packet, here, aim));
    const bool half = packet.flags & kNonMinimal;
    std::uint32_t slot = any_blue(view, random, here, aim, half);
    if (timing_.routing == AriesRouting::adaptive || timing_.routing == AriesRouting::minimal_adaptive) {
      const std::uint32_t other = any_blue(view, random, here, aim, half);
      if (blue_load(view, random, here, other) < blue_load(view, random, here, slot)) slot = other;
    }
    set_slot(packet, slot);
  }
  // At injection: minimal or by way of a root.
  template <typename View>
  void decide(const View& view, Random& random, Packet& packet, Node here, Node target) const {
    packet.aux |= kDecided;
    if (here == target || packet.flags & kDeterministic) return;
    if (timing_.routing != AriesRouting::valiant && timing_.routing != AriesRouting::adaptive) return;
    const bool local = here / kGroup == target / kGroup;
    const Node first = here / kGroup * kGroup;  // of the group, which may be smaller than others
    const auto any_root = [&] {
      Node root;
      do {
        root = local ? first + random.below(std::min(kGroup, sites() - first)) : random.below(sites());
      } while (detour_ && detours_.dead(root));
      return root;
    };
    if (timing_.routing == AriesRouting::valiant) return set_root(packet, any_root());
    std::uint32_t minimal = ~0u, minimal_slot = 0, other = ~0u, other_slot = 0;
    Node root = here;
    for (int i = 0; i < 2; ++i) {
      std::uint32_t slot = 0;
      if (const std::uint32_t load = way_load(view, random, here, target, false, &slot); load < minimal) {
        minimal = load;
        minimal_slot = slot;
      }
    }
    for (int i = 0; i < 2; ++i) {
      std::uint32_t slot = 0;
      const Node r = any_root();
      if (r == here) continue;
      if (const std::uint32_t load = way_load(view, random, here, r, true, &slot); load < other) {
        other = load;
        other_slot = slot;
        root = r;
      }
    }
    if (root != here && minimal > (other << timing_.bias.shift) + timing_.bias.bias) {
      set_root(packet, root);
      if (root / kGroup != here / kGroup) set_slot(packet, other_slot);
    } else if (!local) {
      set_slot(packet, minimal_slot);
    }
  }
  static void set_root(Packet& packet, Node root) {
    packet.src = (packet.src & kNodeMask) | root << 17;
    packet.flags |= kNonMinimal;
  }

  model::Dragonfly dragonfly_;
  AriesTiming timing_;
  DragonflyDetours detours_;
  bool detour_ = false;
  std::vector<Wire> wires_;
};

}  // namespace orrery::sim
