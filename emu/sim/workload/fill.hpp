// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Workloads of the Blue Gene/L hardware measurements: many nodes to a few, and line and plane fill by
// row broadcast.
#pragma once

#include "emu/sim/scene/result.hpp"
#include "emu/sim/workload/traffic.hpp"
#include "emu/sim/workload/workload.hpp"

#include <memory>
#include <string>
#include <vector>

namespace orrery::sim {

// Every node of one list sends `packets` packets to every node of another ("hot region": all nodes
// outside a subcube send to all inside). Each sender starts at a receiver of its own.
class Gather final : public Workload {
 public:
  Gather(Node nodes, const std::vector<Node>& senders, std::vector<Node> receivers, std::uint64_t packets,
         std::uint16_t payload, std::uint64_t seed);
  Next next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) override;
  std::uint64_t expected_packets() const override { return senders_ * receivers_.size() * packets_; }

 private:
  std::vector<Node> receivers_;
  std::uint64_t packets_, senders_;
  std::uint16_t payload_;
  std::vector<std::uint64_t> left_;  // packets that each node still sends
  std::vector<std::uint32_t> first_;
};

// A broadcast from node 0 along its x line (two colours: x+, x-) or over its xy plane (four colours).
// Packets leave a copy at every node they pass. In a plane, the nodes of the colour's first line send
// each packet on along the other dimension ("corner turn": received whole, then injected again); the
// nodes of the root's own line that this misses get it by one more hop from their last neighbour. The
// four colours use no link together, so that a plane can take four links' worth of data.
class Fill final : public Workload {
 public:
  // `planes`: fill the plane, else the line. `packets`: of each colour. REQUIRES: sides of the filled
  // dimensions >= 3, closed.
  Fill(const Box& box, bool plane, std::uint64_t packets, std::uint16_t payload);
  Next next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) override;
  bool delivered(Node node, const Packet& packet, Tick now, bool copy) override;
  // Packets and copies to every node of the line or plane but the root.
  std::uint64_t expected_packets() const override { return packets_ * (plane_ ? 4 : 2) * (members() - 1); }
  // Nodes of the line or plane that received every packet.
  Node complete() const;
  // Ticks that the root's links need for its packets.
  std::uint64_t packets_per_colour() const { return packets_; }

 private:
  static constexpr std::uint32_t kColours = 4;
  struct NodeState {
    std::uint64_t received = 0;
    std::uint32_t turn[kColours] = {};  // packets to send along the second dimension
    std::uint32_t last[kColours] = {};  // packets to hand to the neighbour on the root's line
  };
  Node members() const { return plane_ ? box_.sides[0] * box_.sides[1] : box_.sides[0]; }
  std::uint32_t side(int direction) const { return box_.sides[static_cast<std::size_t>(direction % 3)]; }
  std::uint32_t coordinate(Node node, int direction) const;
  Node moved(Node node, int direction, std::uint32_t steps) const;
  Box box_;
  bool plane_;
  std::uint64_t packets_, sent_[kColours] = {};
  std::uint16_t payload_;
  std::vector<NodeState> state_;
};

// Every node sends each of its packets along its own x line, x+ and x- in turn, as far as the last node
// before itself; every node passed keeps a copy. All lines are busy at once.
class RowBroadcast final : public Workload {
 public:
  // `packets` of each node. REQUIRES: the x side >= 3, closed.
  RowBroadcast(const Box& box, std::uint64_t packets, std::uint16_t payload);
  Next next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) override;
  bool delivered(Node node, const Packet& packet, Tick now, bool copy) override;
  std::uint64_t expected_packets() const override { return packets_ * box_.nodes() * (box_.sides[0] - 1); }
  // Nodes that received every packet of every other node of their line.
  Node complete() const;

 private:
  Box box_;
  std::uint64_t packets_;
  std::uint16_t payload_;
  std::vector<std::uint64_t> sent_, received_;
};

// The workloads of row broadcasts by their names: line-fill, plane-fill, row-broadcast.
std::string deposit_names();
bool is_deposit(const std::string& name);
// `bytes` of a root (line, plane) or of each node (row), in packets of one size, at least one in each
// direction of a fill. Outcomes: the workload; a refusal for a shape that it does not fit. REQUIRES:
// is_deposit(name); bytes, payload_max >= 1.
Refusal make_deposit(const std::string& name, const Box& box, const std::array<bool, 3>& closed,
                     std::uint64_t bytes, std::uint32_t payload_max, std::unique_ptr<Workload>* out);

}  // namespace orrery::sim
