// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Lost links and routers of tile_router.hpp, a part of tile_router_inl.hpp.
#pragma once

#include "emu/base/check.hpp"
#include "emu/sim/tile/tile_router.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace orrery::sim {

template <typename F>
void TileRouter<F>::plan(Losses losses) {
  losses_ = std::move(losses);
  if (losses_.links.empty() || losses_.at != 0) return;
  take_out();
  if (fabric_.has_new_tables()) fabric_.use_new_tables();
}

template <typename F>
void TileRouter<F>::take_out() {
  static_assert(kMaxPorts < 63);
  some_lost_ = !losses_.links.empty();
  for (const Node router : losses_.routers) sites_[router].out |= kFailed;
  for (const FailedLink& link : losses_.links) {
    const Wire& wire = wires_[std::size_t{link.router} * fabric_.ports() + link.port];
    ORRERY_CHECK(wire.peer != Wire::kNowhere, "router {} has no link {}", link.router, link.port);
    if (!in_service(link.router, link.port)) continue;
    sites_[link.router].out |= std::uint64_t{1} << link.port;
    sites_[wire.peer].out |= std::uint64_t{1} << wire.back;
    links_ -= 2;
  }
}

template <typename F>
void TileRouter<F>::give_up_pending(const std::vector<std::unique_ptr<Partition>>& parts) {
  if (losses_.routers.empty()) return;
  for (const auto& part : parts)
    for (Node node = part->first() * fabric_.nics(); node < (part->first() + part->count()) * fabric_.nics();
         ++node) {
      Nic& nic = nics_[node];
      if (nic.pending == kNone || !node_failed(part->pool()[nic.pending].dst)) continue;
      part->pool().remove(nic.pending);
      nic.pending = kNone;
      ++part->counters().dropped;
    }
}

template <typename F>
std::uint64_t TileRouter<F>::held(const std::vector<std::unique_ptr<Partition>>& parts) const {
  std::uint64_t count = 0;
  for (const auto& part : parts)
    for (Node node = part->first() * fabric_.nics(); node < (part->first() + part->count()) * fabric_.nics();
         ++node) {
      count += nics_[node].pending != kNone;
      for (std::uint32_t i = nics_[node].returned; i != kNone; i = part->pool()[i].next) ++count;
    }
  return count;
}

template <typename F>
Tick TileRouter<F>::interlude(Tick now, const std::vector<std::unique_ptr<Partition>>& parts,
                              std::uint64_t in_flight) {
  // Every router looks at its queues and interfaces again.
  const auto wake = [&](Tick at) {
    for (const auto& part : parts)
      for (Node site = part->first(); site < part->first() + part->count(); ++site)
        part->post(at, {site, kLook, 0, 0, 0});
  };
  if (!some_lost_) {
    take_out();
    give_up_pending(parts);
    wake(now);
    if (!fabric_.has_new_tables()) return kNever;
    quiesce_.began = now;
    hold_until_ = kNever;
    return now + kDrainCheck;
  }
  if (in_flight > held(parts)) return now + kDrainCheck;
  fabric_.use_new_tables();
  quiesce_.drained = now;
  quiesce_.released = hold_until_ = now + std::max<Tick>(1, losses_.reroute);
  wake(hold_until_);
  return kNever;
}

template <typename F>
[[gnu::cold, gnu::noinline]] void TileRouter<F>::return_lost(Partition& part, Node id, Tick now) {
  for (std::uint64_t ports = sites_[id].out & sites_[id].waiting; ports != 0; ports &= ports - 1)
    return_queue(part, id, static_cast<std::uint32_t>(std::countr_zero(ports)), now);
}

template <typename F>
[[gnu::cold, gnu::noinline]] void TileRouter<F>::return_queue(Partition& part, Node id, std::uint32_t port,
                                                              Tick now) {
  Site& site = sites_[id];
  Output& out = outputs_[std::size_t{id} * ports_ + port];
  for (unsigned vcs = out.busy_vcs; vcs != 0; vcs &= vcs - 1) {
    const int v = std::countr_zero(vcs);
    for (std::uint32_t index = out.head[v], next; index != kNone; index = next) {
      Packet& packet = part.pool()[index];
      next = packet.next;
      free_space(part, id, packet, now + 1);
      lose(part, index, now);
    }
    out.head[v] = kNone;
  }
  out.queued = 0;
  out.busy_vcs = 0;
  site.waiting &= ~(std::uint64_t{1} << port);
}

template <typename F>
[[gnu::cold, gnu::noinline]] void TileRouter<F>::lose(Partition& part, std::uint32_t index, Tick now) {
  Packet& packet = part.pool()[index];
  // As it was when it was sent first, but for the links that it crossed.
  packet.src &= F::kNodeMask;
  packet.dst &= F::kNodeMask;
  packet.flags = static_cast<std::uint8_t>(packet.flags & ~kNonMinimal);
  packet.aux = packet.hold = 0;
  packet.next = kNone;
  Node to = packet.src;
  if (node_failed(packet.src) || node_failed(packet.dst)) {
    if (packet.flags & kResponse) to = packet.dst;
    if (node_failed(to)) {
      ++part.counters().dropped;
      part.pool().remove(index);
      return;
    }
  }
  part.transfer(now + cross_delay_,
                {to / fabric_.nics(), kReturned, static_cast<std::uint8_t>(to % fabric_.nics()), 0, index});
}

template <typename F>
[[gnu::cold, gnu::noinline]] void TileRouter<F>::bury(Partition& part, Node id, Tick now) {
  Site& site = sites_[id];
  const auto lose_all = [&](std::uint32_t& list) {
    while (list != kNone) {
      const std::uint32_t index = list;
      list = part.pool()[index].next;
      lose(part, index, now);
    }
  };
  lose_all(site.arrived);
  for (std::uint64_t ports = site.waiting; ports != 0; ports &= ports - 1) {
    Output& out = outputs_[std::size_t{id} * ports_ + static_cast<std::uint32_t>(std::countr_zero(ports))];
    for (std::uint32_t& head : out.head) lose_all(head);
    out.queued = 0;
    out.busy_vcs = 0;
  }
  site.waiting = 0;
  for (Nic* nic = &nics_[std::size_t{id} * fabric_.nics()]; site.refill != 0; ++nic, site.refill >>= 1)
    for (std::uint32_t* const list : {&nic->responses, &nic->pending, &nic->returned}) lose_all(*list);
}

// Those of one tick have no order among them: they wait by age, then by destination.
template <typename F>
[[gnu::cold, gnu::noinline]] void TileRouter<F>::take_back(Partition& part, Nic& nic, std::uint32_t index) {
  PacketPool& pool = part.pool();
  if (const Packet& packet = pool[index]; node_failed(packet.src) || node_failed(packet.dst)) {
    // The node that gets it has asked for it: see lose().
    if (cost_.response_flits != 0) nic.outstanding -= packets_of(packet);
    ++part.counters().dropped;
    return pool.remove(index);
  }
  const auto key = [&](std::uint32_t i) {
    const Packet& p = pool[i];
    return std::tuple(p.created, p.dst, p.flags, p.tag, p.payload, p.flits, p.hops);
  };
  std::uint32_t* at = &nic.returned;
  while (*at != kNone && key(*at) <= key(index)) at = &pool[*at].next;
  pool[index].next = *at;
  *at = index;
}

}  // namespace orrery::sim
