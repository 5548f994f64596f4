// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/workload/fill.hpp"

#include "emu/sim/tile/torus_grid.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace orrery::sim {

Gather::Gather(Node nodes, const std::vector<Node>& senders, std::vector<Node> receivers,
               std::uint64_t packets, std::uint16_t payload, std::uint64_t seed)
    : receivers_(std::move(receivers)),
      packets_(packets),
      senders_(senders.size()),
      payload_(payload),
      left_(nodes, 0),
      first_(nodes, 0) {
  Random random(seed, 0x6a7);
  for (const Node node : senders) {
    left_[node] = packets * receivers_.size();
    first_[node] = random.below(static_cast<std::uint32_t>(receivers_.size()));
  }
}

Next Gather::next(Node node, std::uint32_t, Tick now, Random&, Send& out) {
  if (left_[node] == 0) return Next::idle;
  --left_[node];
  out.dst = receivers_[(first_[node] + left_[node]) % receivers_.size()];
  out.payload = payload_;
  out.created = now;
  return Next::send;
}

namespace {
// Colour: direction of the first line, direction of the turn. The sign stays: where a core serves the plus
// directions and another the minus ones, what one receives it sends.
constexpr int kFirst[4] = {0, 1, 3, 4};   // x+ y+ x- y-
constexpr int kSecond[4] = {1, 0, 4, 3};  // y+ x+ y- x-
// Colours of a line fill are 0 and 2: x+ and x-. Their FIFOs, and those that hand on what goes along x and y:
// three of each half, which is what a core fills.
constexpr std::uint32_t kNoColour = 4;
constexpr std::uint32_t kColourOf[6] = {0, 1, kNoColour, 2, 3, kNoColour};
constexpr std::uint32_t kLastAlongX = 2;
enum Phase : std::uint32_t { kLine, kTurn, kLast };
}  // namespace

Fill::Fill(const Box& box, bool plane, std::uint64_t packets, std::uint16_t payload)
    : box_(box), plane_(plane), packets_(packets), payload_(payload), state_(box.nodes()) {}

std::uint32_t Fill::coordinate(Node node, int direction) const {
  return dim_of(direction) == 0 ? node % box_.sides[0] : node / box_.sides[0] % box_.sides[1];
}

Node Fill::moved(Node node, int direction, std::uint32_t steps) const {
  const std::uint32_t n = side(direction), at = coordinate(node, direction);
  const std::uint32_t to = minus_of(direction) ? (at + n - steps) % n : (at + steps) % n;
  return dim_of(direction) == 0 ? node - at + to : node - at * box_.sides[0] + to * box_.sides[0];
}

Next Fill::next(Node node, std::uint32_t fifo, Tick now, Random&, Send& out) {
  if (fifo >= std::size(kColourOf)) return Next::idle;
  out.payload = payload_;
  out.created = now;
  const auto send = [&](std::uint32_t colour, int direction, std::uint32_t hops, Phase phase) {
    out.dst = moved(node, direction, hops);
    out.hints = static_cast<std::uint8_t>(1u << direction);
    out.flags = hops > 1 ? kDeposit : 0;
    out.tag = colour * 4 + phase;
    return Next::send;
  };
  NodeState& state = state_[node];
  if (const std::uint32_t colour = kColourOf[fifo]; colour != kNoColour) {
    if (!plane_ && colour != 0 && colour != 2) return Next::idle;
    if (node == 0) {
      if (sent_[colour] == packets_) return Next::idle;
      ++sent_[colour];
      return send(colour, kFirst[colour], side(kFirst[colour]) - 1, kLine);
    }
    if (state.turn[colour] == 0) return Next::idle;
    --state.turn[colour];
    return send(colour, kSecond[colour], side(kSecond[colour]) - 1, kTurn);
  }
  // No node has two colours of one of these FIFOs.
  for (std::uint32_t colour = fifo == kLastAlongX ? 0 : 1; colour < kColours; colour += 2)
    if (state.last[colour] != 0) {
      --state.last[colour];
      return send(colour, kFirst[colour], 1, kLast);
    }
  return Next::idle;
}

bool Fill::delivered(Node node, const Packet& packet, Tick, bool) {
  NodeState& state = state_[node];
  ++state.received;
  if (!plane_) return false;
  const std::uint32_t colour = packet.tag / 4;
  const auto phase = static_cast<Phase>(packet.tag % 4);
  const int first = kFirst[colour];
  if (phase == kLine) {
    ++state.turn[colour];
    return true;
  }
  // The last node of the first line's direction, one step before the root's line.
  if (phase == kTurn && coordinate(node, first) == coordinate(moved(0, first, side(first) - 1), first)) {
    ++state.last[colour];
    return true;
  }
  return false;
}

Node Fill::complete() const {
  const std::uint64_t wanted = packets_ * (plane_ ? 4 : 2);
  Node count = 0;
  for (Node node = 0; node < members(); ++node) count += node == 0 || state_[node].received == wanted;
  return count;
}

RowBroadcast::RowBroadcast(const Box& box, std::uint64_t packets, std::uint16_t payload)
    : box_(box), packets_(packets), payload_(payload), sent_(box.nodes(), 0), received_(box.nodes(), 0) {}

Next RowBroadcast::next(Node node, std::uint32_t, Tick now, Random&, Send& out) {
  if (sent_[node] == packets_) return Next::idle;
  const Node side = box_.sides[0], x = node % side;
  const bool minus = sent_[node]++ % 2 != 0;
  out.dst = node - x + (x + (minus ? 1 : side - 1)) % side;
  out.hints = minus ? 1u << 3 : 1u;  // x-, x+
  out.flags = kDeposit;
  out.payload = payload_;
  out.created = now;
  return Next::send;
}

bool RowBroadcast::delivered(Node node, const Packet&, Tick, bool) {
  ++received_[node];
  return false;
}

Node RowBroadcast::complete() const {
  return static_cast<Node>(std::count(received_.begin(), received_.end(), packets_ * (box_.sides[0] - 1)));
}

namespace {
constexpr const char* kDeposits[] = {"line-fill", "plane-fill", "row-broadcast"};
}

std::string deposit_names() { return fmt::format("{}, {}, {}", kDeposits[0], kDeposits[1], kDeposits[2]); }

bool is_deposit(const std::string& name) {
  return std::find(std::begin(kDeposits), std::end(kDeposits), name) != std::end(kDeposits);
}

Refusal make_deposit(const std::string& name, const Box& box, const std::array<bool, 3>& closed,
                     std::uint64_t bytes, std::uint32_t payload_max, std::unique_ptr<Workload>* out) {
  const bool plane = name == "plane-fill", rows = name == "row-broadcast";
  for (std::size_t d = 0; d < (plane ? 2u : 1u); ++d)
    if (box.sides[d] < 3 || !closed[d])
      return {fmt::format("{} on {}x{}x{}: expected at least 3 nodes round {}", name, box.sides[0],
                          box.sides[1], box.sides[2], plane ? "x and y" : "x")};
  const std::uint64_t ways = rows ? 1 : plane ? 4 : 2, share = (bytes + ways - 1) / ways;
  const std::uint64_t packets = (share + payload_max - 1) / payload_max;
  const auto payload = static_cast<std::uint16_t>((share + packets - 1) / packets);
  if (rows) {
    *out = std::make_unique<RowBroadcast>(box, packets, payload);
  } else {
    *out = std::make_unique<Fill>(box, plane, packets, payload);
  }
  return {};
}

}  // namespace orrery::sim
