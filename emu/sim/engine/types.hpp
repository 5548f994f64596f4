// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Words of the packet simulator: integer time, the random streams of the nodes, the packet record, the
// event record.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace orrery::sim {

// Simulated time in ticks of the router that is simulated (Blue Gene/L: one byte time of a link). What
// a tick is in nanoseconds is the router's to say and used in reports only.
using Tick = std::uint64_t;
inline constexpr Tick kNever = ~Tick{0};
using Node = std::uint32_t;

// One node's random stream. Each node has its own, drawn from in an order that depends on that node's
// history alone, so that a run repeats bit for bit whatever the partitions and threads.
class Random {
 public:
  explicit Random(std::uint64_t seed = 0) : state_(mix(seed)) {}
  Random(std::uint64_t seed, std::uint64_t stream) : state_(mix(seed ^ mix(stream + 1))) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    return mix(state_);
  }
  // Uniform in [0, n), n >= 1.
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(((next() >> 32) * n) >> 32); }
  // Uniform in (0, 1].
  double unit() { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }
  bool chance(std::uint32_t per_2_32) { return static_cast<std::uint32_t>(next() >> 32) < per_2_32; }
  // The finaliser of SplitMix64 (public domain).
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

 private:
  std::uint64_t state_;
};

// A probability as a threshold for Random::chance; 1.0 is always.
constexpr std::uint32_t as_chance(double p) {
  return p >= 1.0 ? 0xffffffffu : p <= 0.0 ? 0u : static_cast<std::uint32_t>(p * 4294967296.0);
}

enum PacketFlag : std::uint8_t {
  kDeterministic = 1,  // fixed path (Blue Gene/L: bubble VC only; Cray: hashed or ordered route)
  kPriority = 2,       // high-priority VC
  kDeposit = 4,        // row broadcast: a copy stays at every node passed
  kResponse = 8,       // a response of the network's own (Aries, Gemini), not the workload's
  kNonMinimal = 16,    // on its way to a random root
  kFollows = 32,       // not the first packet of its message
  kMore = 64,          // not the last one
  kGet = 128,          // asks for `payload` bytes, which the response carries (Aries, Gemini)
  kRelayed = kGet,     // ends at a node whose software sends it on (Blue Gene/L)
};

// A packet on its way. 32 bytes so that two share a cache line.
struct Packet {
  Tick created = 0;        // when the source wanted to send it
  std::uint32_t next = 0;  // the packet behind this one in its queue
  std::uint32_t dst = 0;   // as the router encodes it (torus: packed coordinates)
  std::uint32_t src = 0;
  std::uint32_t tag = 0;      // the workload's own word
  std::uint16_t payload = 0;  // bytes of user data
  std::uint8_t flits = 0;     // length in the router's unit (Blue Gene/L: 32 B chunks; Cray: phits)
  std::uint8_t hops = 0;      // links crossed so far
  std::uint8_t hints = 0;     // Blue Gene/L hint bits; others: state of the route
  std::uint8_t flags = 0;
  std::uint8_t aux = 0;   // dateline bits; blue links crossed
  std::uint8_t hold = 0;  // buffer units that it occupies where it is
};
static_assert(sizeof(Packet) == 32 && std::is_trivially_copyable_v<Packet>);

// What happens at a node at a tick: 8 bytes, since a run holds several for each link. Meaning of the small
// fields belongs to the router.
class Event {
 public:
  static constexpr Node kMaxNodes = 1u << 20;
  Event() = default;
  // REQUIRES: node < kMaxNodes, kind < 8, slot < 64, lane < 8. `word`: a packet, or what an event that has
  // none counts.
  constexpr Event(Node node, std::uint8_t kind, std::uint8_t slot, std::uint8_t lane, std::uint32_t word)
      : packet(word),
        rest_(node | std::uint32_t{kind} << 20 | std::uint32_t{slot} << 23 | std::uint32_t{lane} << 29) {}
  Node node() const { return rest_ & (kMaxNodes - 1); }
  std::uint8_t kind() const { return rest_ >> 20 & 7; }
  std::uint8_t slot() const { return rest_ >> 23 & 63; }
  std::uint8_t lane() const { return static_cast<std::uint8_t>(rest_ >> 29); }
  std::uint8_t amount() const { return static_cast<std::uint8_t>(packet); }

  std::uint32_t packet = 0;

 private:
  std::uint32_t rest_ = 0;
};
static_assert(sizeof(Event) == 8 && std::is_trivially_copyable_v<Event>);

}  // namespace orrery::sim
