// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The event loop's part of bgl_router.hpp; included by the one file that instantiates the engine.
#pragma once

#include "emu/base/check.hpp"
#include "emu/sim/bgl/bgl_processors_inl.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace orrery::sim {

template <typename E, int S>
BglRouter<E, S>::BglRouter(const BglConfig& config)
    : config_(config), grid_(config.sides), hot_(grid_.nodes()), queues_(grid_.nodes()) {
  const int dynamic = static_cast<int>(config.dynamic_vcs);
  priority_vc_ = dynamic + E::kChannels;
  ORRERY_CHECK(priority_vc_ < S, "{} dynamic VCs do not fit a stride of {}", dynamic, S);
  for (int v = 0; v < S; ++v) {
    const std::uint32_t bytes = v < dynamic         ? config.dynamic_bytes
                                : v < priority_vc_  ? config.escape_bytes
                                : v == priority_vc_ ? config.priority_bytes
                                                    : 32;
    capacity_[v] = bytes / 32;
    range_shift_[v] = 0;
    while ((capacity_[v] >> range_shift_[v]) > 4) ++range_shift_[v];
  }
  full_ = config.max_chunks;
  for (std::uint32_t tokens = full_; tokens < range_of_.size(); ++tokens)
    range_of_[tokens] = static_cast<std::uint8_t>(1 + (config.jsq ? (tokens - 1) >> range_shift_[0] : 0));
  for (int d = 0; d < kPorts; ++d) {
    const TorusGrid::Packed top = (grid_.side(dim_of(d)) - 1) << (10 * dim_of(d));
    directions_[d].mask = 1023u << (10 * dim_of(d));
    directions_[d].edge = minus_of(d) ? 0 : top;
    for (const bool wraps : {false, true}) {
      const TorusGrid::Packed from = wraps == minus_of(d) ? 0 : top;
      directions_[d].ways[wraps] = {grid_.step(grid_.node(from), from, d) - grid_.node(from),
                                    grid_.step_packed(from, d) - from};
    }
  }
  slq_chance_ = as_chance(config.slq_fraction);
  in_network_chance_ = as_chance(config.in_network_fraction);
  for (int d = 0; d < 3; ++d)
    if (!config.closed[static_cast<std::size_t>(d)]) open_ |= 1u << d;
  if (config.count_unblocking) seen_.resize(grid_.nodes());
  if (config.processor_ticks != 0) processors_.resize(grid_.nodes());
  // A bit error anywhere in the packet costs a retransmission; by length in chunks.
  for (std::uint32_t c = 1; c <= config.max_chunks; ++c)
    error_chance_[c] = as_chance(1 - std::pow(1 - config.bit_error_rate, 8.0 * wire_ticks(c)));
  for (Node n = 0; n < grid_.nodes(); ++n) {
    Hot& hot = hot_[n];
    hot = Hot();
    hot.random = Random(config.seed, n);
    hot.coordinates = grid_.coordinates(n);
    for (int d = 0; d < kPorts; ++d) {
      const bool edge = grid_.wraps(hot.coordinates, d);
      const bool wired = grid_.side(dim_of(d)) > 1 && !(edge && (open_ >> dim_of(d) & 1));
      if (wired) hot.links = static_cast<std::uint8_t>(hot.links | 1u << d);
      for (int v = 0; v < S; ++v) hot.tokens[d][v] = static_cast<std::uint8_t>(capacity_[v]);
    }
    if (!seen_.empty()) std::memcpy(seen_[n].tokens, hot.tokens, sizeof(hot.tokens));
    hot.idle = hot.links;
    Queues& queues = queues_[n];
    for (auto& tail : queues.tail) tail = kNone;
    for (auto& packet : queues.inject) packet = kNone;
  }
}

template <typename E, int S>
void BglRouter<E, S>::start(Partition& part, Node node) {
  Hot& hot = hot_[node];
  hot.idle = hot.links;
  hot.refill = static_cast<std::uint8_t>((1u << config_.injection_fifos) - 1);
  mark(part, hot, node);
}

// The head of `slot` may ask from now on.
template <typename E, int S>
inline void BglRouter<E, S>::expose(Hot& hot, const Packet& packet, int slot) {
  const Slots mine = Slots{1} << slot;
  const unsigned hints = packet.hints;
  hot.hints[slot] = packet.hints;
  if (hints == 0) {
    hot.here |= mine;
    return;
  }
  if (packet.flags & (kDeterministic | kPriority)) [[unlikely]] {
    hot.fixed |= mine;
    if (packet.flags & kPriority) hot.urgent |= mine;
    hot.want[ordered_direction(packet.hints)] |= mine;
    return;
  }
  for (int d = 0; d < kPorts; ++d) hot.want[d] |= Slots{hints >> d & 1u} << slot;
}

template <typename E, int S>
inline void BglRouter<E, S>::take_out(Hot& hot, int slot) {
  const Slots others = ~(Slots{1} << slot);
  for (Slots& want : hot.want) want &= others;
  hot.here &= others;
  hot.fixed &= others;
  hot.urgent &= others;
}

template <typename E, int S>
inline void BglRouter<E, S>::pop(Partition& part, Queues& queues, int slot) {
  if (slot >= kInjection) {
    queues.inject[slot - kInjection] = kNone;
    return;
  }
  std::uint32_t& tail = queues.tail[slot];
  Packet& last = part.pool()[tail];
  if (last.next == tail) {
    tail = kNone;
  } else {
    last.next = part.pool()[last.next].next;
  }
}

// Tells the sender upstream of `slot` that `amount` tokens' worth of space is free now.
template <typename E, int S>
inline void BglRouter<E, S>::return_space(Partition& part, Node node, int slot, std::uint8_t amount,
                                          Tick now) {
  const int port = slot / S;
  const Node upstream = node + way(hot_[node], reverse_of(port)).node;
  part.signal(now + config_.token_ticks, {upstream, kCredit, static_cast<std::uint8_t>(slot % S),
                                          static_cast<std::uint8_t>(port), amount});
}

template <typename E, int S>
inline void BglRouter<E, S>::apply(Partition& part, Event event, Tick now) {
  Hot& hot = hot_[event.node()];
  Queues& queues = queues_[event.node()];
  const int slot = event.slot();
  switch (event.kind()) {
    case kArrive: {
      Packet& packet = part.pool()[event.packet];
      hot.fill[slot / S][slot % S] = static_cast<std::uint8_t>(hot.fill[slot / S][slot % S] + packet.hold);
      const std::uint32_t before = std::exchange(queues.tail[slot], event.packet);
      if (before != kNone) {
        packet.next = std::exchange(part.pool()[before].next, event.packet);
        return;
      }
      packet.next = event.packet;
      if (hot.moving >> slot & 1) return;
      expose(hot, packet, slot);
      return mark(part, hot, event.node());
    }
    case kDone:
    case kReceived: {
      hot.moving &= ~(Slots{1} << slot);
      if (event.kind() == kDone) {
        const auto link = static_cast<std::uint8_t>(1u << event.lane());
        hot.idle = static_cast<std::uint8_t>(hot.idle | (link & hot.links));
      }
      if (slot >= kInjection) {
        const std::uint32_t ready = queues.inject[slot - kInjection];
        if (ready == kNone) {
          hot.refill = static_cast<std::uint8_t>(hot.refill | 1u << (slot - kInjection));
        } else {
          expose(hot, part.pool()[ready], slot);
        }
      } else {
        const int port = slot / S;
        const std::uint8_t amount = event.kind() == kDone ? event.amount() : part.pool()[event.packet].hold;
        hot.fill[port][slot % S] = static_cast<std::uint8_t>(hot.fill[port][slot % S] - amount);
        if (event.kind() == kDone) {
          hot.buses -= 1u << (4 * port);
          hot.bus_full &= ~slots_of(port);
        } else if (slot % S != priority_vc_ && has_room_after(part, event.node(), port, event.packet)) {
          hot.receiving = hot.receiving & 0x3fu & ~(1u << port);
        }
        // Not before: a token on its way all the while would be one more event to keep for each link.
        return_space(part, event.node(), slot, amount, now);
        if (const std::uint32_t first = head(part, queues, slot); first != kNone)
          expose(hot, part.pool()[first], slot);
      }
      mark(part, hot, event.node());
      if (event.kind() == kReceived) enter_reception(part, event.node(), slot, event.packet, now, false);
      return;
    }
    case kCredit: {
      hot.tokens[event.lane()][slot] =
          static_cast<std::uint8_t>(hot.tokens[event.lane()][slot] + event.amount());
      ++part.counters().credits;
      if ((hot.idle >> event.lane() & 1) || !seen_.empty()) mark(part, hot, event.node());
      return;
    }
    case kWake:
      if (may_refill(hot, queues, slot)) {
        hot.refill = static_cast<std::uint8_t>(hot.refill | 1u << slot);
        mark(part, hot, event.node());
      }
      return;
    case kCopy:
      return enter_reception(part, event.node(), slot, event.packet, now, true);
    case kRead: {
      const bool copy = event.lane() != 0;
      if (!copy) leave_reception(part, event.node(), slot, event.packet);
      return deliver(part, event.node(), event.packet, now, copy);
    }
  }
}

// The packet at the head of `slot` is at its destination: into the reception FIFO. Those with priority have
// one, and a way into it, of their own.
template <typename E, int S>
inline void BglRouter<E, S>::receive(Partition& part, Node node, int slot, Tick now) {
  Hot& hot = hot_[node];
  Queues& queues = queues_[node];
  const std::uint32_t index = head(part, queues, slot);
  const Packet& packet = part.pool()[index];
  const Tick end = now + wire_ticks(packet.flits);
  take_out(hot, slot);
  hot.moving |= Slots{1} << slot;
  if (slot < kInjection && slot % S != priority_vc_) {
    hot.receiving = (hot.receiving | 1u << (slot / S)) & 0x3fu;
  }
  pop(part, queues, slot);
  part.post(end, {node, kReceived, static_cast<std::uint8_t>(slot), 0, index});
}

// Phase 1, the senders' side of it.
template <typename E, int S>
inline void BglRouter<E, S>::offer(const Hot& hot, Offer& out) const {
  out.open = 0;
  out.asking = out.dynamic = 0;
  for (unsigned idle = hot.idle; idle != 0; idle &= idle - 1) {
    const int d = std::countr_zero(idle);
    unsigned best = 0, vcs = 0;
    for (unsigned v = 0; v < config_.dynamic_vcs; ++v) {
      const unsigned range = range_of_[hot.tokens[d][v]];
      vcs = (range > best ? 0 : vcs) | unsigned{range >= best} << v;
      best = std::max(best, range);
    }
    out.range[d] = static_cast<std::uint8_t>(best);
    out.vcs[d] = static_cast<std::uint8_t>(vcs);
    out.open |= unsigned{best != 0} << d;
    out.asking |= hot.want[d];
    out.dynamic |= best != 0 ? hot.want[d] : 0;
  }
}

// Phase 1, a head's side: the direction with most tokens, ties at random among (direction, VC) pairs.
template <typename E, int S>
inline int BglRouter<E, S>::pick_direction(const Offer& offer, std::uint8_t hints, Coins& coins) const {
  const unsigned open = offer.open & hints;
  if ((open & (open - 1)) == 0) return std::countr_zero(open);
  unsigned best = 0;
  Slots ties = 0;  // S bits a direction
  for (unsigned rest = open; rest != 0; rest &= rest - 1) {
    const int d = std::countr_zero(rest);
    const unsigned range = offer.range[d];
    ties = (range > best ? 0 : ties) | (range >= best ? Slots{offer.vcs[d]} << (S * d) : 0);
    best = std::max(best, range);
  }
  return coins.any_of(ties) / S;
}

// Phases 2 and 3: of these heads the one from the fullest FIFO (in four ranges), or any.
template <typename E, int S>
inline int BglRouter<E, S>::fullest(const Hot& hot, Slots slots, bool longest, Coins& coins) const {
  if ((slots & (slots - 1)) == 0) return std::countr_zero(slots);
  if (slots & hot.urgent) [[unlikely]]
    slots &= hot.urgent;
  if (!longest) return coins.any_of(slots);
  int best = 0;
  Slots ties = 0;
  for (Slots rest = slots; rest != 0; rest &= rest - 1) {
    const int slot = std::countr_zero(rest);
    const int range = slot < kInjection ? (hot.fill[slot / S][slot % S] - 1) >> range_shift_[slot % S] : 3;
    ties = (range > best ? 0 : ties) | (range >= best ? Slots{1} << slot : 0);
    best = std::max(best, range);
  }
  return coins.any_of(ties);
}

// The escape VC that the head of `slot` would use in its ordered direction `d`.
template <typename E, int S>
inline int BglRouter<E, S>::escape_channel(const Hot& hot, const Queues& queues, const Partition& part,
                                           int slot, int d) const {
  if (hot.urgent >> slot & 1) return priority_vc_;
  if (E::kChannels == 2) return escape_vc(part.pool()[head(part, queues, slot)], d);
  return static_cast<int>(config_.dynamic_vcs);
}

// Tokens that it needs there. A bubble is entered with space for two full packets: by injection, by a turn,
// from a dynamic VC.
template <typename E, int S>
inline std::uint32_t BglRouter<E, S>::escape_need(int slot, int d, int vc) const {
  const bool ring = E::kChannels == 1 || vc == priority_vc_;
  const bool goes_on = slot < kInjection && slot / S == d && slot % S == vc;
  return ring && !goes_on ? 2 * full_ : full_;
}

// The escape VC that the head of `slot` can have now, in its ordered direction; -1: none.
template <typename E, int S>
inline int BglRouter<E, S>::escape_for(const Hot& hot, const Queues& queues, const Partition& part,
                                       int slot) const {
  const int d = ordered_direction(hot.hints[slot]);
  if (!(hot.idle >> d & 1)) return -1;
  const int vc = escape_channel(hot, queues, part, slot, d);
  return hot.tokens[d][vc] < escape_need(slot, d, vc) ? -1 : vc;
}

template <typename E, int S>
inline void BglRouter<E, S>::grant(Partition& part, Node node, int slot, int d, int vc, Tick now) {
  Hot& hot = hot_[node];
  Queues& queues = queues_[node];
  const std::uint32_t index = head(part, queues, slot);
  take_out(hot, slot);
  pop(part, queues, slot);
  hot.moving |= Slots{1} << slot;
  hot.idle = static_cast<std::uint8_t>(hot.idle & ~(1u << d));

  Packet& packet = part.pool()[index];
  const std::uint32_t wire = wire_ticks(packet.flits);
  std::uint32_t ticks = wire;
  std::uint32_t late = 0;
  Counters& counters = part.counters();
  if (error_chance_[packet.flits] != 0) [[unlikely]]
    while (hot.random.chance(error_chance_[packet.flits])) {
      late += wire + config_.retry_ticks;
      ++counters.retries;
    }
  ticks += late;
  const std::uint8_t held = packet.hold;
  if (slot < kInjection) {
    const int port = slot / S;
    hot.buses += 1u << (4 * port);
    if ((hot.buses >> (4 * port) & 15) == config_.paths) hot.bus_full |= slots_of(port);
    if (packet.flags & kDeposit) [[unlikely]] {
      Packet copy = packet;
      copy.hops = 0;  // its links are counted with the original
      ++counters.injected;
      ++counters.copies;
      part.post(now + ticks, {node, kCopy, static_cast<std::uint8_t>(slot), 0, part.pool().add(copy)});
    }
  } else if (!processors_.empty()) {
    hot.refill = static_cast<std::uint8_t>(hot.refill | 1u << (slot - kInjection));
  }
  const std::uint32_t hold = hold_units(packet, vc);
  hot.tokens[d][vc] = static_cast<std::uint8_t>(hot.tokens[d][vc] - hold);
  packet.hold = static_cast<std::uint8_t>(hold);
  ++packet.hops;
  const Way& onward = way(hot, d);
  packet.aux = static_cast<std::uint8_t>(packet.aux | unsigned{wraps(hot, d)} << dim_of(d));
  const bool done = (((hot.coordinates + onward.coordinates) ^ packet.dst) & directions_[d].mask) == 0;
  packet.hints = static_cast<std::uint8_t>(packet.hints & ~(unsigned{done} << d));

  ++counters.link_hops;
  counters.link_ticks += ticks;
  ++counters.vc_hops[static_cast<std::size_t>(vc)];
  if (vc >= static_cast<int>(config_.dynamic_vcs) && vc < priority_vc_) ++counters.escape_hops;
  if (!link_busy_.empty()) link_busy_[std::size_t{node} * kPorts + static_cast<std::size_t>(d)] += ticks;

  part.post(now + ticks, {node, kDone, static_cast<std::uint8_t>(slot), static_cast<std::uint8_t>(d), held});
  part.transfer(now + config_.hop_ticks + late,
                {node + onward.node, kArrive, static_cast<std::uint8_t>(d * S + vc), 0, index});
}

template <typename E, int S>
inline void BglRouter<E, S>::arbitrate(Partition& part, Node node, Tick now) {
  Hot& hot = hot_[node];
  hot.marked = 0;
  if (!seen_.empty()) [[unlikely]]
    count_unblocking(part, node);
  refill_all(part, node, now);
  for (std::uint64_t here = hot.here; here != 0; here &= here - 1) {
    const int slot = std::countr_zero(here);
    if (slot >= kInjection || !(hot.receiving >> (slot / S) & 1) || slot % S == priority_vc_)
      receive(part, node, slot, now);
  }
  Coins coins(hot.random);
  while (hot.idle != 0 && arbitrate_once(part, node, now, coins)) {
  }
  if (hot.refill != 0) refill_all(part, node, now);
  if (!seen_.empty()) [[unlikely]]
    std::memcpy(seen_[node].tokens, hot.tokens, sizeof(hot.tokens));
}

// One arbitration cycle of the hardware; what lost asks again while links are idle. False when nothing moved.
template <typename E, int S>
inline bool BglRouter<E, S>::arbitrate_once(Partition& part, Node node, Tick now, Coins& coins) {
  Hot& hot = hot_[node];
  const Queues& queues = queues_[node];
  constexpr Slots kNetwork = (Slots{1} << kInjection) - 1;
  Offer offers;
  offer(hot, offers);
  const Slots asking = offers.asking & ~hot.bus_full;
  if (asking == 0) return false;
  const Slots dynamic = offers.dynamic & asking & ~hot.fixed;
  Slots escaping = 0;
  for (Slots rest = asking & ~dynamic; rest != 0; rest &= rest - 1)
    if (escape_for(hot, queues, part, std::countr_zero(rest)) >= 0) escaping |= rest & -rest;
  const Slots able = dynamic | escaping;
  if (able == 0) return false;
  const bool longest = coins.chance(slq_chance_);
  const bool network_first = coins.chance(in_network_chance_);

  // Phase 2 by receiver, and which sender its winner asks.
  Slots requests[kPorts] = {};
  unsigned requested = 0;
  const auto ask = [&](int slot, unsigned except) {
    int d;
    if (dynamic >> slot & 1) {
      const auto hints = static_cast<std::uint8_t>(hot.hints[slot] & ~except);
      if ((hints & offers.open) == 0) return;
      d = pick_direction(offers, hints, coins);
    } else {
      d = ordered_direction(hot.hints[slot]);
      if (except >> d & 1) return;
    }
    if (slot < kInjection) part.pool().prefetch(queues.tail[slot]);
    requests[d] |= Slots{1} << slot;
    requested |= 1u << d;
  };
  for (Slots rest = able & kNetwork; rest != 0;) {
    const Slots group = rest & slots_of(std::countr_zero(rest) / S);
    rest &= ~group;
    ask(fullest(hot, group, longest, coins), 0);
  }
  // Where packets in the network go first, an injection FIFO asks only senders that no head in the network
  // could use.
  if (Slots rest = able & ~kNetwork; rest != 0) {
    unsigned taken = 0;
    if (network_first && !(rest & hot.urgent)) [[likely]] {
      Slots left = 0;  // those that want one of the other senders
      for (unsigned idle = hot.idle; idle != 0; idle &= idle - 1) {
        const Slots want = hot.want[std::countr_zero(idle)];
        const bool used = (want & able & kNetwork) != 0;
        taken |= used ? idle & -idle : 0;
        left |= used ? 0 : want;
      }
      rest &= left;
    }
    for (; rest != 0; rest &= rest - 1) ask(std::countr_zero(rest), taken);
  }

  // Phase 3.
  const bool moved = requested != 0;
  for (; requested != 0; requested &= requested - 1) {
    const int d = std::countr_zero(requested);
    Slots slots = requests[d];
    if (!network_first && (slots & ~kNetwork) && !(slots & hot.urgent)) slots &= ~kNetwork;
    const int slot = fullest(hot, slots, longest, coins);
    const int vc = dynamic >> slot & 1 ? coins.any_of(offers.vcs[d]) : escape_for(hot, queues, part, slot);
    grant(part, node, slot, d, vc, now);
  }
  return moved;
}

}  // namespace orrery::sim
