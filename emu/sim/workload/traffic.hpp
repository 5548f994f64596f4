// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Synthetic workloads that need no memory of what arrived: traffic with a rate, and all-to-all.
#pragma once

#include "emu/sim/workload/workload.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace orrery::sim {

// A bijection of [0, n) chosen by a key, computed and not stored: a Feistel network walked until it
// lands inside. For the random orders of many nodes at once.
class Shuffle {
 public:
  explicit Shuffle(std::uint32_t n);
  std::uint32_t at(std::uint32_t i, std::uint64_t key) const;

 private:
  std::uint32_t n_;
  int half_bits_;
};

enum class Pattern : std::uint8_t {
  uniform,      // any other node
  neighbour,    // one of the nodes one link away (torus) or beside by number
  hot_spot,     // `hot_fraction` to one node, the rest uniform
  hot_region,   // `hot_fraction` into a box of nodes, the rest uniform over the whole machine
  complement,   // node number with all bits inverted (largest minus it)
  tornado,      // just under half way round in every dimension
  transpose,    // coordinates rotated: (x, y, z) -> (y, z, x); needs equal sides
  permutation,  // one random partner each, fixed for the run
};
// Outcomes: true and the pattern; false for a name that is none.
bool pattern_named(std::string_view name, Pattern* out);
const char* pattern_name(Pattern pattern);

// The machine as patterns see it: a box of nodes, id = x + X (y + Y z). Machines that are no torus are
// one row.
struct Box {
  std::array<std::uint32_t, 3> sides{1, 1, 1};
  Node nodes() const { return sides[0] * sides[1] * sides[2]; }
};

// Where packets of a pattern go.
class Destinations {
 public:
  // `hot_sides`: the box that a hot region occupies from (0, 0, 0). REQUIRES: box.nodes() >= 2.
  Destinations(Pattern pattern, const Box& box, double hot_fraction, std::array<std::uint32_t, 3> hot_sides,
               std::uint64_t seed);
  // Another node; `node` itself where the pattern sends it nowhere (then it sends nothing).
  Node pick(Node node, Random& random) const;

 private:
  Node other(Node node, Random& random) const {
    const Node n = random.below(nodes_ - 1);
    return n >= node ? n + 1 : n;
  }
  Pattern pattern_;
  Box box_;
  Node nodes_;
  std::uint32_t hot_chance_;
  std::array<std::uint32_t, 3> hot_sides_;
  Shuffle shuffle_;
  std::uint64_t seed_;
};

// Every node sends packets of `payload` bytes to destinations of a pattern. Gaps are exponential, so
// sources are independent Poisson streams, one per injection FIFO; what cannot enter waits in an
// unbounded source queue that costs no memory: it is its stream, read later.
class RateTraffic final : public Workload {
 public:
  struct Options {
    double packets_per_node_tick = 0;  // 0: always another packet ready
    std::uint32_t fifos = 6;
    std::uint16_t payload = 240;
    std::uint16_t payload_low = 0;  // > 0: sizes uniform between it and `payload`
    std::uint8_t flags = 0;
    std::uint64_t seed = 1;
    double urgent_share = 0;  // of the packets, sent with priority; < 1
    std::uint32_t urgent_fifos =
        0;  // FIFOs of their own, behind the `fifos` others; 0: in turn with the others
  };
  // REQUIRES: options.urgent_fifos == 0, or a rate and a share above 0.
  RateTraffic(const Destinations& where, Node nodes, const Options& options);
  Next next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) override;
  double offered_per_node_tick() const override { return options_.packets_per_node_tick; }
  std::size_t bytes() const override { return streams_.capacity() * sizeof(std::uint64_t); }

 private:
  static constexpr int kFraction = 10;  // stream times have 1/1024 tick
  Destinations where_;
  double mean_gap(std::uint32_t fifo) const { return fifo < options_.fifos ? mean_gap_ : urgent_gap_; }
  Options options_;
  double mean_gap_ = 0, urgent_gap_ = 0;  // of one stream, in fractions
  std::vector<std::uint64_t> streams_;
};

// Every node of a set sends `packets` packets to every other node of its set.
class AllToAll final : public Workload {
 public:
  enum class Order : std::uint8_t {
    random,  // each node its own random order of destinations, one burst to each in turn
    shift,   // every step one shift s for all, in a common random order: node i to i + s, whole messages
  };
  struct Options {
    std::uint32_t fifos = 6;
    bool finite_fifos = true;   // deal packets as FIFOs empty; else all are in the FIFOs from the start:
    bool by_direction = false;  // each in that of the direction in which it has furthest to go; else in turn
    std::uint32_t open = 0;     // ... bit of a dimension that does not wrap round
    std::uint64_t bytes = 240;  // from each node to each other node
    std::uint32_t payload_max = 240;
    Order order = Order::random;
    // Order::random: packets to one destination before the next one's turn, all through one FIFO. 1: packets
    // are dealt singly; as many as a message has: whole messages.
    std::uint32_t burst = 1;
    std::uint8_t flags = 0;
    std::uint64_t seed = 1;
    std::uint64_t repeat = 1;  // whole exchanges, one after the other without a barrier
    // Order::shift: a node begins a message when as many packets have arrived as it has sent, as in a
    // pairwise exchange. Else it goes on at once, and nodes drift apart.
    bool in_step = false;
    // Order::shift: bytes that a node may have sent beyond what has arrived at it, counted in packets. So
    // nodes keep within that much of each other's steps, and short messages do not wait. 0: no limit.
    std::uint64_t ahead = 0;
  };
  // REQUIRES: of options.by_direction: the machine is a torus of `box`, fifos == 6; of options.ahead: 0, or a
  // packet's payload or more and not in_step.
  // `members`: the nodes of each set are those with equal `set_of` and are numbered by `rank_of`; empty
  // vectors: one set of all nodes. See subsets().
  AllToAll(Node nodes, const Options& options);
  // Sets of the nodes that share the coordinates outside `dims` (bit per dimension): lines, planes.
  AllToAll(const Box& box, std::uint32_t dims, const Options& options);
  // One set: the listed nodes; all others are silent.
  AllToAll(Node nodes, std::vector<Node> members, const Options& options);

  Next next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) override;
  bool delivered(Node node, const Packet& packet, Tick now, bool copy) override;
  std::uint64_t expected_packets() const override;
  std::size_t bytes() const override {
    return sent_.capacity() * sizeof(std::uint64_t) + rank_.capacity() * 4 + at_.capacity() * sizeof(Burst) +
           owed_.capacity() * sizeof(std::int64_t);
  }

 private:
  void allot();
  bool must_wait(Node node, std::uint64_t k) const;
  bool place(Node node, Node* rank, Node* base) const;
  Next next_of_burst(Node node, Node rank, Node base, std::uint32_t fifo, Tick now, Send& out);
  bool every_fifo_walks_all() const { return options_.by_direction && !options_.finite_fifos; }
  bool belongs_in(std::uint32_t fifo, Node node, Node to, std::uint64_t number, Send& out) const;
  void fill_in(Node base, Node to, std::uint64_t piece, Tick now, Send& out) const;
  Node member(Node node, Node rank) const;
  Options options_;
  Node nodes_, set_size_;
  Box box_;
  std::uint32_t dims_ = 7;
  std::vector<Node> members_;        // of the one set, if listed
  std::vector<std::uint32_t> rank_;  // ... and back; ~0: silent
  Shuffle shuffle_;
  std::uint64_t per_pair_;           // packets
  std::uint64_t total_;              // packets of one node
  std::vector<std::uint64_t> sent_;  // per node, or per node and FIFO when the FIFOs are infinite
  std::vector<std::int64_t> owed_;  // per node: packets sent less packets arrived, if one waits for the other
  std::int64_t most_owed_ = 0;      // ... a packet is sent at less, if there is a limit
  std::uint64_t rounds_ = 1;        // of bursts to every destination, that make one exchange
  struct Burst {
    std::uint64_t number = 0;  // in the node's order
    std::uint32_t done = 0;    // packets of it; 0: the next one is to be taken
  };
  std::vector<Burst> at_;  // per node and FIFO, if bursts are longer than one
};

// An all-to-all job on some nodes; the others are silent or send uniform traffic to each other. Bytes and
// latencies that a run reports are the job's alone.
class JobTraffic final : public Workload {
 public:
  JobTraffic(Node nodes, const std::vector<Node>& members, const AllToAll::Options& job,
             const RateTraffic::Options& background, bool busy);
  Next next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) override;
  bool delivered(Node node, const Packet& packet, Tick now, bool copy) override {
    return is_member_[node] && job_.delivered(node, packet, now, copy);
  }
  bool has_background() const override { return busy_; }
  bool counts(Node node) const override { return is_member_[node] != 0; }
  std::uint64_t expected_packets() const override { return busy_ ? 0 : job_.expected_packets(); }

 private:
  AllToAll job_;
  RateTraffic background_;
  std::vector<Node> others_;
  std::vector<std::uint8_t> is_member_;
  bool busy_;
};

}  // namespace orrery::sim
