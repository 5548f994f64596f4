// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/engine/types.hpp"

namespace orrery::sim {

// One packet that a node wants to send.
struct Send {
  Node dst = 0;
  std::uint32_t tag = 0;
  std::uint16_t payload = 0;  // bytes, at most what the router said it takes
  std::uint8_t flags = 0;     // PacketFlag
  std::uint8_t hints = 0;     // directions the software asks for; 0: the router chooses minimal ones
  Tick created = 0;           // send: when the wish arose; later: when to ask again
};

// The packet of what `source` sends, before a router adds what it needs.
inline Packet packet_of(Node source, const Send& send) {
  Packet packet;
  packet.created = send.created;
  packet.src = source;
  packet.dst = send.dst;
  packet.tag = send.tag;
  packet.payload = send.payload;
  packet.flags = send.flags;
  return packet;
}

enum class Next : std::uint8_t {
  send,   // the Send is filled in
  later,  // nothing before tick `created`, which is in the future
  idle,   // nothing until delivered() says otherwise
};

// What the nodes of a run send. The router asks for a packet when the head of an injection FIFO is
// free, and tells of each packet that arrived.
//
// Threads: all calls for one node come from the thread of its partition, one at a time; different nodes
// are called in parallel. So state is kept per node and nothing else is written.
// One call per packet, not per event: virtual on purpose, so that a workload is one file.
class Workload {
 public:
  virtual ~Workload() = default;
  // The next packet of FIFO `fifo` of `node` at tick `now`.
  virtual Next next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) = 0;
  // `packet` arrived at `node` (its tail, at `now`). `copy`: a row-broadcast copy on the way. True when
  // a FIFO that was idle may have something to send now.
  virtual bool delivered(Node node, const Packet& packet, Tick now, bool copy) {
    (void)node, (void)packet, (void)now, (void)copy;
    return false;
  }
  // Packets that the whole run will send, 0 if it has no end.
  virtual std::uint64_t expected_packets() const { return 0; }
  // Packets offered up to `now`, sent or still waiting; 0 for workloads without a rate.
  virtual double offered_per_node_tick() const { return 0; }
  virtual bool has_background() const { return false; }
  // With a background: whether what `node` receives belongs to the measured job.
  virtual bool counts(Node node) const {
    (void)node;
    return true;
  }
  // Of a replay, after the run: the records that no process came to, and of how many. Else none of none.
  struct Replayed {
    std::uint64_t never_ran = 0, records = 0;
  };
  virtual Replayed replayed() const { return {}; }
  virtual std::size_t bytes() const { return 0; }
};

}  // namespace orrery::sim
