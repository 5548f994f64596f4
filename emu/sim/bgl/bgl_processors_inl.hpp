// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The processors' part in bgl_router.hpp: they write packets into injection FIFOs, asking the workload for
// them, and read them out of reception FIFOs.
#pragma once

#include "emu/sim/bgl/bgl_router.hpp"

#include <algorithm>
#include <bit>

namespace orrery::sim {

// A packet has come out of the network: a processor reads it when it has done what it began before.
template <typename E, int S>
inline void BglRouter<E, S>::enter_reception(Partition& part, Node node, int slot, std::uint32_t index,
                                             Tick now, bool copy) {
  if (processors_.empty()) return deliver(part, node, index, now, copy);
  Processors& mine = processors_[node];
  const std::uint32_t chunks = part.pool()[index].flits;
  const bool minus = slot < kInjection && minus_of(slot / S);
  Tick& free = mine.free[config_.processors == 2 && minus];
  free = std::max(now, free) + processor_time(chunks);
  if (slot < kInjection && slot % S != priority_vc_ && !copy) {
    std::uint16_t& held = mine.held[slot / S];
    held = static_cast<std::uint16_t>(held + chunks);
  }
  part.post(free, {node, kRead, static_cast<std::uint8_t>(slot), copy, index});
}

template <typename E, int S>
inline void BglRouter<E, S>::leave_reception(Partition& part, Node node, int slot, std::uint32_t index) {
  if (slot >= kInjection || slot % S == priority_vc_) return;
  Hot& hot = hot_[node];
  std::uint16_t& held = processors_[node].held[slot / S];
  const bool had_room = has_room(held);
  held = static_cast<std::uint16_t>(held - part.pool()[index].flits);
  if (had_room || !has_room(held)) return;
  hot.receiving = hot.receiving & 0x3fu & ~(1u << (slot / S));
  mark(part, hot, node);
}

template <typename E, int S>
inline void BglRouter<E, S>::deliver(Partition& part, Node node, std::uint32_t index, Tick now, bool copy) {
  const Packet packet = part.pool()[index];
  part.pool().remove(index);
  part.count_delivery(node, packet, now);
  if (part.workload().delivered(node, packet, now, copy)) {
    Hot& hot = hot_[node];
    for (int f = 0; f < static_cast<int>(config_.injection_fifos); ++f)
      if (may_refill(hot, queues_[node], f)) hot.refill = static_cast<std::uint8_t>(hot.refill | 1u << f);
    mark(part, hot, node);
  }
}

template <typename E, int S>
inline void BglRouter<E, S>::refill_all(Partition& part, Node node, Tick now) {
  Hot& hot = hot_[node];
  for (unsigned fifos = hot.refill; fifos != 0; fifos &= fifos - 1)
    refill(part, node, std::countr_zero(fifos), now);
  hot.refill = 0;
}

// Asks the workload for the next packet of an injection FIFO.
template <typename E, int S>
void BglRouter<E, S>::refill(Partition& part, Node node, int fifo, Tick now) {
  Hot& hot = hot_[node];
  Queues& queues = queues_[node];
  if (queues.inject[fifo] != kNone) return;
  if (!processors_.empty() && core_of_fifo(node, fifo) > now)
    return part.post(core_of_fifo(node, fifo), {node, kWake, static_cast<std::uint8_t>(fifo), 0, 0});
  Send send;
  switch (part.workload().next(node, static_cast<std::uint32_t>(fifo), now, hot.random, send)) {
    case Next::idle:
      return;
    case Next::later:
      return part.post(send.created, {node, kWake, static_cast<std::uint8_t>(fifo), 0, 0});
    case Next::send:
      break;
  }
  Packet packet = packet_of(node, send);
  packet.dst = grid_.coordinates(send.dst);
  packet.flits = static_cast<std::uint8_t>(chunks_for(send.payload));
  packet.flags = static_cast<std::uint8_t>(send.flags | (config_.deterministic ? kDeterministic : 0));
  packet.hints = send.hints ? send.hints
                            : grid_.hints(hot.coordinates, packet.dst,
                                          static_cast<std::uint32_t>(hot.random.next() >> 60), open_);
  packet.next = kNone;
  ++part.counters().injected;
  if (!processors_.empty()) core_of_fifo(node, fifo) = now + processor_time(packet.flits);
  const std::uint32_t index = part.pool().add(packet);
  queues.inject[fifo] = index;
  if (!(hot.moving >> (kInjection + fifo) & 1)) expose(hot, packet, kInjection + fifo);
}

}  // namespace orrery::sim
