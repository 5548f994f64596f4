// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Blue Gene/L's torus router, packet by packet.
//
// Source: Adiga et al., "Blue Gene/L torus interconnection network" (IBM J. R&D 49, 2005), "Torus
// network". A node has six receivers, six senders, injection FIFOs. A receiver holds each packet in the
// FIFO of its virtual channel; the head of each FIFO asks to move:
//   phase 1  the head picks a direction and VC among those that hint bits allow and that have an idle
//            link and tokens for a full packet: most tokens in four ranges (JSQ), ties at random; if no
//            dynamic one is left, its escape;
//   phase 2  of one receiver's heads one wins: priority, then the fullest FIFO in four ranges (SLQ) on a
//            fraction of cycles, else any;
//   phase 3  of the receivers and injection FIFOs that ask one sender, one wins: priority, then packets
//            already in the network, then as phase 2.
// A transfer occupies link, transfer bus and FIFO for the packet's wire time; its buffer space is
// returned upstream as tokens when it ends. Cut-through: the header is at the next router `hop_ticks`
// after the transfer began.
//
// Owned by a run; node state is touched by the thread of the node's partition only.
// 1. tokens[d][v] = space in the neighbour's FIFO v - what is there - what is on its way to it.
// 2. A slot is in want[d] only if its FIFO's head is exposed: not in transfer, and d is in its hints.
// 3. The escape network keeps a full packet of space free in every ring (bubble rule) or orders its
//    channels by a dateline, so that some packet can always move.
//
// LIMITATIONS: arbitration takes no time of its own beyond hop_ticks; a losing head asks again in the
// same tick, not the next; tokens return when the whole packet has left, not chunk by chunk; reception FIFOs
// fill only if processors cost time, and not by copies of a row broadcast; the ack-only packets of idle links
// are left out (the 8 bytes of each packet's token-ack are in its wire time). A retransmission holds the link
// for the time-out and a second transfer; the header that went ahead waits as long.
#pragma once

#include "emu/sim/bgl/bgl_config.hpp"
#include "emu/sim/engine/partition.hpp"
#include "emu/sim/tile/torus_grid.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <type_traits>
#include <vector>

namespace orrery::sim {

// Which escape VC a head may take, how many tokens that needs, what it debits.
struct BubbleEscape {
  static constexpr int kChannels = 1;
  static constexpr bool kFullSize = true;  // the corrected rule
};
struct NaiveBubbleEscape {
  static constexpr int kChannels = 1;
  static constexpr bool kFullSize = false;
};
struct DatelineEscape {
  static constexpr int kChannels = 2;
  static constexpr bool kFullSize = false;
};

// Of these hint bits the one of the first dimension.
constexpr std::array<std::uint8_t, 64> dimension_first() {
  std::array<std::uint8_t, 64> table{};
  for (unsigned hints = 0; hints < 64; ++hints)
    for (unsigned dim = 3; dim-- > 0;) {
      if (hints >> dim & 1) table[hints] = static_cast<std::uint8_t>(dim);
      if (hints >> (dim + 3) & 1) table[hints] = static_cast<std::uint8_t>(dim + 3);
    }
  return table;
}

// `kStride`: VCs a receiver has room for, dynamic + escape + one for priority: 4 as built, 8 for studies.
template <typename Escape, int kStride>
class BglRouter {
 public:
  static constexpr int kHorizonLog2 = 10;  // a full packet's 270 ticks and a retry fit
  static constexpr int kPorts = 6;
  static constexpr int kFifos = 8;
  static constexpr int kInjection = kPorts * kStride;  // first injection slot
  static constexpr int kSlots = kInjection + kFifos;
  static_assert(kSlots <= 64);
  using Slots = std::conditional_t<(kSlots <= 32), std::uint32_t, std::uint64_t>;  // a bit each

  // REQUIRES: config is valid (validate_bgl).
  explicit BglRouter(const BglConfig& config);

  Node sites() const { return grid_.nodes(); }
  Node partition_grain() const { return grid_.side(0) * grid_.side(1); }  // a z plane
  Tick min_cross_delay() const { return std::min(config_.hop_ticks, config_.token_ticks); }

  void start(Partition& part, Node node);
  void apply(Partition& part, Event event, Tick now);
  void arbitrate(Partition& part, Node node, Tick now);
  void prefetch(const Partition& part, const Event& event) const {
    const char* at = reinterpret_cast<const char*>(&hot_[event.node()]);
    for (std::size_t line = 0; line < sizeof(Hot); line += 64) __builtin_prefetch(at + line);
    if (event.kind() != kCredit) __builtin_prefetch(&queues_[event.node()].tail[event.slot() % kInjection]);
    if (event.kind() == kArrive || event.kind() == kReceived) part.pool().prefetch(event.packet);
  }
  // The last packet of the event's FIFO: one is put behind it, or it knows the first.
  void prefetch_packets(const Partition& part, const Event& event) const {
    if (event.kind() == kCredit || event.slot() >= kInjection) return;
    const std::uint32_t tail = queues_[event.node()].tail[event.slot()];
    if (tail != kNone) part.pool().prefetch(tail);
  }

  // Ticks that a packet of `chunks` 32-byte chunks occupies a link.
  std::uint32_t wire_ticks(std::uint32_t chunks) const { return 32 * chunks + config_.link_overhead; }
  std::uint32_t chunks_for(std::uint32_t payload) const {
    return (payload + config_.software_bytes + 31) / 32;
  }
  const BglConfig& config() const { return config_; }
  const TorusGrid& grid() const { return grid_; }
  std::size_t bytes() const {
    return hot_.capacity() * sizeof(Hot) + queues_.capacity() * sizeof(Queues) + link_busy_.capacity() * 4 +
           seen_.capacity() * sizeof(Seen) + processors_.capacity() * sizeof(Processors);
  }
  static constexpr std::size_t bytes_per_node() { return sizeof(Hot) + sizeof(Queues); }

  // Ticks that each link was occupied, [node * 6 + direction]; kept from keep_link_busy() on.
  void keep_link_busy() { link_busy_.assign(std::size_t{sites()} * kPorts, 0); }
  const std::vector<std::uint32_t>& link_busy() const { return link_busy_; }
  // Unidirectional links in service.
  std::uint64_t links() const {
    std::uint64_t count = 0;
    for (const Hot& hot : hot_) count += static_cast<unsigned>(std::popcount(hot.links));
    return count;
  }
  // Takes the link out of service. Before the run. Routing does not know; hint bits must avoid it.
  void fail_link(Node node, int direction) {
    hot_[node].links &= static_cast<std::uint8_t>(~(1u << direction));
  }
  // Adds how many of each VC's tokens are out, over all links in service.
  void look(std::vector<VcUse>* vcs) const;

  // After a deadlock: a cycle of channels, each full and waiting for the next; empty if none is found.
  std::vector<std::string> find_cycle(const std::vector<std::unique_ptr<Partition>>& parts) const;

 private:
  enum Kind : std::uint8_t { kArrive, kDone, kCredit, kWake, kReceived, kCopy, kRead };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // What arbitration reads and writes, per node.
  struct Hot {
    Slots want[kPorts];  // slots whose head may leave in this direction
    Slots here;          // slots whose head has arrived
    Slots bus_full;      // slots of receivers with all transfer buses in use
    Slots fixed;         // slots whose head is deterministic or priority
    Slots urgent;        // slots whose head is priority
    Random random;
    std::uint32_t coordinates;
    Slots moving;  // slots with a transfer under way
    std::uint8_t tokens[kPorts][kStride];
    std::uint8_t fill[kPorts][kStride];  // tokens' worth of packets in our own FIFOs
    std::uint8_t hints[kSlots];          // of the exposed head
    std::uint32_t buses;                 // transfers of each receiver under way, 4 bits each
    std::uint8_t links;                  // outgoing links in service
    std::uint8_t idle;                   // ... and not transferring
    std::uint8_t receiving : 7;          // receivers whose bus to the reception FIFO is in use
    std::uint8_t marked : 1;             // to be arbitrated in this tick
    std::uint8_t refill;                 // injection FIFOs to ask the workload for
  };
  struct alignas(64) Queues {
    std::uint32_t tail[kInjection];  // last of each FIFO, in a ring: the packet behind it is the first
    std::uint32_t inject[kFifos];    // packet at the head of an injection FIFO
  };

  // Small random choices out of few 64-bit draws.
  class Coins {
   public:
    explicit Coins(Random& random) : random_(random) {}
    std::uint32_t slice() {
      if (left_ == 0) {
        bits_ = random_.next();
        left_ = 4;
      }
      --left_;
      const auto low = static_cast<std::uint32_t>(bits_ & 0xffff);
      bits_ >>= 16;
      return low;
    }
    // One bit of `mask`, which has at least one. Few are set as a rule, and the drawn one cannot be
    // predicted: no branch for the first ones.
    int any_of(Slots mask) {
      if ((mask & (mask - 1)) == 0) return std::countr_zero(mask);
      std::uint32_t skip = slice() * static_cast<std::uint32_t>(std::popcount(mask)) >> 16;
      for (std::uint32_t i = 0; i < 3; ++i) mask = skip > i ? mask & (mask - 1) : mask;
      for (; skip > 3; --skip) mask &= mask - 1;
      return std::countr_zero(mask);
    }
    bool chance(std::uint32_t per_2_32) { return per_2_32 == ~0u || slice() < per_2_32 >> 16; }

   private:
    Random& random_;
    std::uint64_t bits_ = 0;
    int left_ = 0;
  };
  // What the senders offer in one arbitration cycle.
  struct Offer {
    Slots asking;                // which want an idle direction
    Slots dynamic;               // ... one that is open
    unsigned open;               // idle directions with a dynamic VC to be had
    std::uint8_t range[kPorts];  // of an idle direction: of the tokens of its best VC (range_of_)
    std::uint8_t vcs[kPorts];    // ... the VCs of that range
  };

  // What one step adds to a node's number and to its packed coordinates.
  struct Way {
    Node node;
    TorusGrid::Packed coordinates;
  };
  struct Direction {
    TorusGrid::Packed mask, edge;  // of the dimension's coordinate; what that is where a step wraps round
    Way ways[2];                   // [whether it does]
  };

  static Slots slots_of(int port) { return ((Slots{1} << kStride) - 1) << (port * kStride); }

  void mark(Partition& part, Hot& hot, Node node) {
    if (hot.marked) return;
    hot.marked = 1;
    part.mark(node);
  }
  bool wraps(const Hot& hot, int direction) const {
    const Direction& to = directions_[direction];
    return (hot.coordinates & to.mask) == to.edge;
  }
  const Way& way(const Hot& hot, int direction) const {
    return directions_[direction].ways[wraps(hot, direction)];
  }
  int ordered_direction(std::uint8_t hints) const {
    if (config_.order == EscapeOrder::direction) return std::countr_zero(hints);
    // Dimension order: bit d and d + 3 are one dimension.
    return kDimensionFirst[hints];
  }
  int escape_vc(const Packet& packet, int direction) const {
    if constexpr (Escape::kChannels == 2)
      return static_cast<int>(config_.dynamic_vcs) + ((packet.aux >> dim_of(direction)) & 1);
    (void)packet, (void)direction;
    return static_cast<int>(config_.dynamic_vcs);
  }
  bool bubble_vc(int vc) const { return vc >= static_cast<int>(config_.dynamic_vcs); }
  std::uint32_t hold_units(const Packet& packet, int vc) const {
    if (bubble_vc(vc) && (Escape::kFullSize || vc == priority_vc_)) return config_.max_chunks;
    return packet.flits;
  }

  void expose(Hot& hot, const Packet& packet, int slot);
  void refill(Partition& part, Node node, int fifo, Tick now);
  void refill_all(Partition& part, Node node, Tick now);
  void receive(Partition& part, Node node, int slot, Tick now);
  void offer(const Hot& hot, Offer& out) const;
  int pick_direction(const Offer& offer, std::uint8_t hints, Coins& coins) const;
  int fullest(const Hot& hot, Slots slots, bool longest, Coins& coins) const;
  bool arbitrate_once(Partition& part, Node node, Tick now, Coins& coins);
  int escape_channel(const Hot& hot, const Queues& queues, const Partition& part, int slot,
                     int direction) const;
  std::uint32_t escape_need(int slot, int direction, int vc) const;
  void count_unblocking(Partition& part, Node node);
  int escape_for(const Hot& hot, const Queues& queues, const Partition& part, int slot) const;
  void take_out(Hot& hot, int slot);
  // The first packet of a FIFO, kNone if it is empty.
  static std::uint32_t head(const Partition& part, const Queues& queues, int slot) {
    if (slot >= kInjection) return queues.inject[slot - kInjection];
    const std::uint32_t tail = queues.tail[slot];
    return tail == kNone ? kNone : part.pool()[tail].next;
  }
  void pop(Partition& part, Queues& queues, int slot);
  void return_space(Partition& part, Node node, int slot, std::uint8_t amount, Tick now);
  void grant(Partition& part, Node node, int slot, int direction, int vc, Tick now);
  void deliver(Partition& part, Node node, std::uint32_t packet, Tick now, bool copy);
  void enter_reception(Partition& part, Node node, int slot, std::uint32_t packet, Tick now, bool copy);
  void leave_reception(Partition& part, Node node, int slot, std::uint32_t packet);
  // Processors that cost time write a FIFO's next packet while the one before is leaving; else it comes at
  // once.
  bool may_refill(const Hot& hot, const Queues& queues, int fifo) const {
    return queues.inject[fifo] == kNone && (!processors_.empty() || !(hot.moving >> (kInjection + fifo) & 1));
  }
  bool has_room(std::uint32_t held) const { return 32 * (held + full_) <= config_.reception_bytes; }
  // The reception FIFO of `port` has room for another packet when this one is in it.
  bool has_room_after(const Partition& part, Node node, int port, std::uint32_t packet) const {
    return processors_.empty() || has_room(processors_[node].held[port] + part.pool()[packet].flits);
  }
  Tick& core_of_fifo(Node node, int fifo) {
    return processors_[node]
        .free[config_.processors == 2 && 2 * static_cast<unsigned>(fifo) >= config_.injection_fifos];
  }
  Tick processor_time(std::uint32_t chunks) const {
    return config_.processor_ticks + (config_.processor_full_ticks - config_.processor_ticks) * (chunks - 1) /
                                         std::max(1u, config_.max_chunks - 1);
  }

  static constexpr std::array<std::uint8_t, 64> kDimensionFirst = dimension_first();
  BglConfig config_;
  TorusGrid grid_;
  int priority_vc_;
  std::uint32_t capacity_[kStride]{};  // tokens of each VC
  int range_shift_[kStride]{};         // tokens >> shift = 2-bit range
  // Of so many tokens of a dynamic VC: 0 if no full packet fits, else a number that grows with their range;
  // without JSQ 1.
  std::array<std::uint8_t, 256> range_of_{};
  Direction directions_[kPorts]{};
  std::uint32_t slq_chance_, in_network_chance_;
  std::uint32_t full_;  // tokens of a full packet
  std::uint32_t open_ = 0;
  std::array<std::uint32_t, 9> error_chance_{};  // by chunks
  std::vector<Hot> hot_;
  std::vector<Queues> queues_;
  std::vector<std::uint32_t> link_busy_;
  struct Seen {
    std::uint8_t tokens[kPorts][kStride];
  };
  std::vector<Seen> seen_;  // tokens at the end of the last arbitration, if unblocking is counted
  struct Processors {
    Tick free[2];                // when each has done all that it has begun
    std::uint16_t held[kPorts];  // chunks in each direction's reception FIFO
  };
  std::vector<Processors> processors_;  // per node, if they cost time
};

}  // namespace orrery::sim
