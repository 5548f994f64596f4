// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/engine/calendar.hpp"
#include "emu/sim/engine/stats.hpp"
#include "emu/sim/engine/types.hpp"
#include "emu/sim/workload/workload.hpp"

#include <memory>
#include <vector>

namespace orrery::sim {

// Packets in flight of one partition; indices are recycled.
class PacketPool {
 public:
  std::uint32_t add(const Packet& packet) {
    ++live_;
    if (free_ != kNone) {
      const std::uint32_t index = free_;
      free_ = packets_[index].next;
      packets_[index] = packet;
      return index;
    }
    const std::uint32_t index = packets_.grow();
    packets_[index] = packet;
    return index;
  }
  void remove(std::uint32_t index) {
    --live_;
    packets_[index].next = free_;
    free_ = index;
  }
  Packet& operator[](std::uint32_t index) { return packets_[index]; }
  const Packet& operator[](std::uint32_t index) const { return packets_[index]; }
  void prefetch(std::uint32_t index) const { __builtin_prefetch(&packets_[index]); }
  std::uint64_t live() const { return live_; }
  std::size_t bytes() const { return packets_.bytes(); }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  BlockArray<Packet, 7> packets_;
  std::uint32_t free_ = kNone;
  std::uint64_t live_ = 0;
};

// A contiguous range of nodes that one thread simulates, and all that it needs: calendar, packets,
// counters, mail for other partitions. Routers see the simulation through it.
//
// 1. Only the owning thread touches it between two barriers of the engine, except `mail` of the other
//    parity, which the receiving partitions read.
// 2. What crosses to another partition arrives at least one window later (the router's
//    min_cross_delay()); a packet moves by value.
class alignas(64) Partition {
 public:
  struct Signal {
    Tick at;
    Event event;
  };
  struct Transfer {
    Tick at;
    Event event;
    Packet packet;
  };
  // What one partition has for another at the end of a window. Nodes that start together send together
  // ever after, so one window in many has nearly all.
  struct Box {
    std::vector<Signal> signals;
    std::vector<Transfer> transfers;
    Tick earliest() const {
      Tick at = kNever;
      for (const Signal& mail : signals) at = at < mail.at ? at : mail.at;
      for (const Transfer& mail : transfers) at = at < mail.at ? at : mail.at;
      return at;
    }
    // Before this is read and `next`, which is empty, written: the larger room goes to what is written where
    // the smaller one is hardly used, so that not both have room for the most that comes.
    void leave_room_to(Box& next) {
      leave(signals, next.signals);
      leave(transfers, next.transfers);
    }
    std::size_t bytes() const {
      return signals.capacity() * sizeof(Signal) + transfers.capacity() * sizeof(Transfer);
    }

   private:
    template <typename T>
    static void leave(std::vector<T>& mine, std::vector<T>& next) {
      if (mine.capacity() <= next.capacity() || 4 * mine.size() > mine.capacity()) return;
      next.assign(mine.begin(), mine.end());
      mine.clear();
      mine.swap(next);
    }
  };

  Partition(Node first, Node count, int horizon_log2)
      : first_(first), count_(count), calendar_(horizon_log2) {}

  Node first() const { return first_; }
  Node count() const { return count_; }
  bool owns(Node node) const { return node - first_ < count_; }

  // Later at a node of this partition. REQUIRES: at > now.
  void post(Tick at, const Event& event) { calendar_.push(at, event); }
  // Later at any node, without a packet.
  void signal(Tick at, const Event& event) {
    if (owns(event.node())) [[likely]]
      return calendar_.push(at, event);
    append(mail_[parity_][home(event.node())].signals, {at, event});
  }
  // Later at any node, with packet `event.packet` of this partition, which leaves it if need be.
  void transfer(Tick at, const Event& event) {
    if (owns(event.node())) [[likely]]
      return calendar_.push(at, event);
    append(mail_[parity_][home(event.node())].transfers, {at, event, pool_[event.packet]});
    pool_.remove(event.packet);
  }
  // Arbitrate at `node` once all events of this tick are applied. The router sees to it that a node is
  // marked once per tick.
  void mark(Node node) { dirty_.push_back(node); }

  PacketPool& pool() { return pool_; }
  const PacketPool& pool() const { return pool_; }
  Counters& counters() { return counters_; }
  const Counters& counters() const { return counters_; }
  LatencyHistogram& latency() { return latency_; }
  Workload& workload() { return *workload_; }

  // All that it occupies: calendar, packets, mail, counters, latencies.
  std::size_t bytes() const {
    std::size_t sum = sizeof(*this) + calendar_.bytes() + pool_.bytes() + dirty_.capacity() * sizeof(Node) +
                      latency_.bytes() +
                      (urgent_latency_ ? sizeof(LatencyHistogram) + urgent_latency_->bytes() : 0);
    for (const auto& boxes : mail_) {
      sum += boxes.capacity() * sizeof(boxes[0]);
      for (const Box& box : boxes) sum += box.bytes();
    }
    return sum;
  }

  // A packet reached its destination at `now`: counted, its latency taken if measuring.
  void count_delivery(Node node, const Packet& packet, Tick now) {
    count_arrival(packet, now);
    if (!(packet.flags & kRelayed)) count_data(node, packet, now);
  }
  // The two halves of it, for a request that arrives before its data does.
  void count_arrival(const Packet& packet, Tick now) {
    ++counters_.delivered;
    counters_.delivered_hops += packet.hops;
    last_delivery_ = now;
  }
  void count_data(Node node, const Packet& packet, Tick now) {
    last_delivery_ = now;
    if (partly_ && !workload_->counts(node)) return;
    counters_.delivered_bytes += packet.payload;
    if (now < measure_from_) return;
    if (packet.flags & kPriority) [[unlikely]] {
      if (!urgent_latency_) urgent_latency_ = std::make_unique<LatencyHistogram>();
      urgent_latency_->add(now - packet.created);
      return;
    }
    latency_.add(now - packet.created);
  }

 private:
  template <typename>
  friend class Engine;
  std::size_t home(Node node) const { return (*home_)[node / grain_]; }
  // Room for little more than there has been: a box's fullest window is the first one, or near it.
  template <typename T>
  static void append(std::vector<T>& to, const T& mail) {
    if (to.size() == to.capacity()) to.reserve(to.size() + to.size() / 8 + 16);
    to.push_back(mail);
  }
  Node first_, count_;
  Calendar calendar_;
  PacketPool pool_;
  Counters counters_;
  LatencyHistogram latency_;                          // of packets without priority,
  std::unique_ptr<LatencyHistogram> urgent_latency_;  // ... and with it
  std::vector<Node> dirty_;
  Workload* workload_ = nullptr;
  Tick measure_from_ = 0;
  Tick last_delivery_ = 0;
  bool partly_ = false;                               // the workload says which nodes count
  const std::vector<std::uint16_t>* home_ = nullptr;  // the partition of each `grain_` nodes
  Node grain_ = 1;
  int parity_ = 0;
  std::vector<Box> mail_[2];  // by receiving partition
};

}  // namespace orrery::sim
