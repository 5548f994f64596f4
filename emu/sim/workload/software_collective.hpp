// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Collectives as software makes them of messages, on machines whose network has none of its own.
#pragma once

#include "emu/sim/scene/result.hpp"
#include "emu/sim/workload/workload.hpp"

#include <memory>
#include <string>
#include <vector>

namespace orrery::sim {

// What the nodes do, in steps. In each a node sends one message, waits for one, or both; it begins the next
// step when all of both is done. With n nodes, numbered by node:
//   broadcast  binomial tree from node 0: in step s the nodes below 2^s send to the one 2^s further on
//   barrier    dissemination: in step s each node sends to the node 2^s further on, round the end
//   allreduce  recursive doubling: in step s with the node whose number differs in bit s. Nodes past the
//              largest power of two give theirs to a node below it first and get the result from it last.
// A message is one or more packets; its step is its tag. Messages of steps that a node has not begun are
// counted as they come. Software and arithmetic take no time: what comes out is the network's share.
//
// Threads: as Workload. 1. A node's counters of a step are its own. 2. A node is never more than one exchange
// ahead of another in barriers and allreduces, so two sets of counters do for any number of them.
class SoftwareCollective final : public Workload {
 public:
  enum class Kind : std::uint8_t { broadcast, barrier, allreduce };
  struct Options {
    Kind kind = Kind::barrier;
    std::uint64_t bytes = 8;  // of a message
    std::uint32_t payload_max = 240;
    std::uint64_t repeat = 1;  // whole collectives, one after the other
  };
  // REQUIRES: nodes >= 2; bytes, payload_max, repeat >= 1; broadcasts are not repeated.
  SoftwareCollective(Node nodes, const Options& options);

  Next next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) override;
  bool delivered(Node node, const Packet& packet, Tick now, bool copy) override;
  std::uint64_t expected_packets() const override;
  std::size_t bytes() const override {
    return states_.capacity() * sizeof(State) + arrived_.capacity() * sizeof(std::uint32_t);
  }
  // Of one collective: the longest chain of messages, each sent because the one before it came, is as long.
  std::uint32_t steps() const { return steps_; }
  // Nodes that have done every step.
  Node complete() const;

 private:
  static constexpr Node kNobody = ~Node{0};
  struct Step {
    Node to = kNobody, from = kNobody;
  };
  struct State {
    std::uint64_t exchange = 0;
    std::uint32_t step = 0;
    std::uint32_t sent = 0;  // packets of the step's message
  };
  Step step_of(Node node, std::uint32_t step) const;
  std::uint32_t& arrived(Node node, std::uint64_t exchange, std::uint32_t step) {
    return arrived_[(std::size_t{node} * 2 + exchange % 2) * steps_ + step];
  }
  Node nodes_;
  Options options_;
  std::uint32_t steps_, packets_;  // of one collective; of one message
  std::vector<State> states_;
  std::vector<std::uint32_t> arrived_;  // packets, by node, parity of the exchange, step
};

std::string software_collective_names();  // "broadcast, barrier, allreduce"
bool is_software_collective(const std::string& name);
// Bytes of a message that says no more: of a barrier and an allreduce 8, of a broadcast `largest`.
std::uint64_t software_collective_bytes(const std::string& name, std::uint64_t largest);
// Outcomes: the workload; a refusal for what the collective of this name cannot have.
// REQUIRES: is_software_collective(name).
Refusal make_software_collective(const std::string& name, Node nodes,
                                 const SoftwareCollective::Options& options, std::unique_ptr<Workload>* out);

}  // namespace orrery::sim
