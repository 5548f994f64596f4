// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The event loop's part of tile_router.hpp; included by the files that instantiate the engine.
#pragma once

#include "emu/base/check.hpp"
#include "emu/sim/tile/tile_losses_inl.hpp"
#include "emu/sim/tile/tile_router.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace orrery::sim {

template <typename F>
TileRouter<F>::TileRouter(F fabric, std::uint64_t seed)
    : fabric_(std::move(fabric)),
      cost_(fabric_.nic()),
      ports_(fabric_.ports() + fabric_.nics()),
      advertise_every_(fabric_.advertise_every()),
      sites_(fabric_.sites()),
      outputs_(std::size_t{fabric_.sites()} * ports_),
      nics_(std::size_t{fabric_.sites()} * fabric_.nics()),
      wires_(std::size_t{fabric_.sites()} * fabric_.ports()) {
  ORRERY_CHECK(ports_ <= kMaxPorts, "{} ports", ports_);
  if (advertise_every_ != 0) advertised_.resize(wires_.size());
  for (Node s = 0; s < fabric_.sites(); ++s) {
    sites_[s].random = Random(seed, s);
    sites_[s].idle = (std::uint64_t{1} << ports_) - 1;
    for (std::uint32_t p = 0; p < ports_; ++p) {
      Output& out = outputs_[std::size_t{s} * ports_ + p];
      out.capacity = static_cast<std::uint16_t>(p < fabric_.ports() ? fabric_.buffer(p) : 0xffff);
      for (int v = 0; v < kVcs; ++v) {
        out.head[v] = out.tail[v] = kNone;
        out.credits[v] = out.capacity;
      }
      if (p >= fabric_.ports()) continue;
      const Wire wire = fabric_.wire(s, p);
      wires_[std::size_t{s} * fabric_.ports() + p] = wire;
      links_ += wire.peer != Wire::kNowhere;
      if (wire.peer == Wire::kNowhere) sites_[s].out |= std::uint64_t{1} << p;
      if (wire.peer != Wire::kNowhere) cross_delay_ = std::min(cross_delay_, fabric_.latency(p));
    }
  }
  for (Nic& nic : nics_) nic.space = cost_.inject_flits;
  if (cost_.cam_entries != 0) cams_.resize(nics_.size());
  if (cost_.firmware != 0) firmwares_.resize(nics_.size());
  const LinkErrors errors = fabric_.errors();
  if (errors.bit_error_rate <= 0) return;
  for (std::uint32_t flits = 0; flits < 256; ++flits)
    error_chance_.push_back(
        as_chance(1 - std::pow(1 - errors.bit_error_rate, 1.0 * flits * errors.flit_bits)));
}

template <typename F>
Tick TileRouter<F>::repeats(Partition& part, Site& site, std::uint32_t port, std::uint32_t flits,
                            Tick ticks) {
  Tick late = 0;
  while (site.random.chance(error_chance_[flits])) {
    ++part.counters().retries;
    late += ticks + 2 * fabric_.latency(port);
  }
  return late;
}

template <typename F>
[[gnu::noinline]] Tick TileRouter<F>::firmware_stall(const Packet& packet, bool swap, Tick ticks, Tick now) {
  StreamFirmware& firmware = firmwares_[packet.dst & F::kNodeMask];
  const Node source = packet.src & F::kNodeMask;
  const bool first = !(packet.flags & kFollows), last = !(packet.flags & kMore);
  // A message of one packet is read out by then.
  if (first && last) return firmware.act(now, std::max<Tick>(ticks, cost_.firmware)) - ticks;
  Tick late = swap ? firmware.act(now, cost_.cam_swap) : 0;
  if (first) late += firmware.begin(source, now + late);
  if (last) firmware.end(source, now + late + ticks, cost_.firmware);
  return late;
}

template <typename F>
Tick TileRouter<F>::receive_stall(Partition& part, const Packet& packet, Tick ticks, Tick now) {
  const bool swap = cams_[packet.dst & F::kNodeMask].pass(
      packet.src & F::kNodeMask, !(packet.flags & kFollows), !(packet.flags & kMore), cost_.cam_entries);
  const Tick late = !firmwares_.empty() ? firmware_stall(packet, swap, ticks, now)
                    : swap              ? cost_.cam_swap
                                        : 0;
  if (late == 0) return 0;
  ++part.counters().receive_stalls;
  part.counters().receive_stall_ticks += late;
  return late;
}

template <typename F>
void TileRouter<F>::start(Partition& part, Node site) {
  sites_[site].refill = (1u << fabric_.nics()) - 1;
  mark(part, sites_[site], site, 0);
}

template <typename F>
void TileRouter<F>::advertise(Site& site, Node id, Tick now) {
  site.told = now;
  for (std::uint32_t p = 0; p < fabric_.ports(); ++p)
    advertised_[std::size_t{id} * fabric_.ports() + p] =
        static_cast<std::uint16_t>(std::min(load_of(id, p), 0xffffu));
}

template <typename F>
inline void TileRouter<F>::apply(Partition& part, const Event& event, Tick now) {
  Site& site = sites_[event.node()];
  // Before the first event of a tick changes anything: what is told is the state after the last tick,
  // whatever the order of the events.
  if (advertise_every_ != 0 && now - site.told >= advertise_every_) advertise(site, event.node(), now);
  switch (event.kind()) {
    case kArrive: {
      // Routed in phase two, in the order of their links: arrivals of one tick have none of their own.
      Packet& packet = part.pool()[event.packet];
      packet.next = site.arrived;
      packet.hints = event.slot();
      packet.hold = event.lane();
      site.arrived = event.packet;
      break;
    }
    case kDone: {
      site.idle |= std::uint64_t{1} << event.slot();
      break;
    }
    case kEjected:
      if (site.out & kFailed) [[unlikely]] {
        part.pool()[event.packet].next = site.arrived;
        site.arrived = event.packet;
        break;
      }
      eject(part, event.node(), event.packet, now);
      break;
    case kCredit: {
      Output& out = outputs_[std::size_t{event.node()} * ports_ + event.slot()];
      out.credits[event.lane()] = static_cast<std::uint16_t>(out.credits[event.lane()] + event.amount());
      ++part.counters().credits;
      if (!(site.idle & site.waiting & (std::uint64_t{1} << event.slot()))) return;
      break;
    }
    case kNicCredit:
      nics_[std::size_t{event.node()} * fabric_.nics() + event.slot()].space += event.amount();
      site.refill |= 1u << event.slot();
      break;
    case kWake:
      nics_[std::size_t{event.node()} * fabric_.nics() + event.slot()].asleep = false;
      site.refill |= 1u << event.slot();
      break;
    case kReturned:
      take_back(part, nics_[std::size_t{event.node()} * fabric_.nics() + event.slot()], event.packet);
      site.refill |= 1u << event.slot();
      break;
    case kLook:
      site.refill = (1u << fabric_.nics()) - 1;
      break;
  }
  mark(part, site, event.node(), now);
}

// A packet's last phit is at its node.
template <typename F>
inline void TileRouter<F>::eject(Partition& part, Node site, std::uint32_t index, Tick now) {
  Packet packet = part.pool()[index];
  packet.src &= F::kNodeMask;  // without the route's notes
  const Node node = packet.dst & F::kNodeMask;
  const std::uint32_t nic_index = node % fabric_.nics();
  Nic& nic = nics_[node];
  if (packet.flags & kResponse) {
    part.pool().remove(index);
    nic.outstanding -= packets_of(packet);
    ++part.counters().responses_back;
    // Not deliveries, but their links are paid for.
    part.counters().delivered_hops += packet.hops;
    if (packet.flags & kGet) part.count_data(node, packet, now);
    sites_[site].refill |= 1u << nic_index;
    return;
  }
  if (packet.flags & kGet) {
    part.count_arrival(packet, now);  // its data is still to come
  } else {
    part.count_delivery(node, packet, now);
  }
  if (part.workload().delivered(node, packet, now, false)) sites_[site].refill |= 1u << nic_index;
  if (cost_.response_flits == 0) {
    part.pool().remove(index);
    return;
  }
  ++part.counters().responses;
  Packet response;
  response.created = packet.created;
  response.src = node;
  response.dst = packet.src;
  response.flags = static_cast<std::uint8_t>(kResponse | (packet.flags & (kDeterministic | kGet)));
  if (packet.flags & kGet) {
    response.payload = packet.payload;
    response.flits = flits_of(response);
  } else {
    response.flits = static_cast<std::uint8_t>(
        std::min<std::uint32_t>(255, cost_.response_flits * fabric_.packets_in(packet.payload)));
  }
  response.next = kNone;
  part.pool()[index] = response;
  queue_response(part, nic, index, now);
  sites_[site].refill |= 1u << nic_index;
}

// Behind those of earlier ticks. Requests of one tick, one by a slow link and one of the router's own, have
// no order among them: their responses go by destination.
template <typename F>
inline void TileRouter<F>::queue_response(Partition& part, Nic& nic, std::uint32_t index, Tick now) {
  if (nic.answered != now) {
    nic.answered = now;
    nic.before = nic.responses == kNone ? kNone : nic.responses_tail;
  }
  PacketPool& pool = part.pool();
  const auto sooner = [&](const Packet& a, const Packet& b) {
    return a.dst != b.dst           ? a.dst < b.dst
           : a.created != b.created ? a.created < b.created
                                    : a.flits < b.flits;
  };
  std::uint32_t before = nic.before;
  const auto next = [&] { return before == kNone ? nic.responses : pool[before].next; };
  while (next() != kNone && !sooner(pool[index], pool[next()])) before = next();
  pool[index].next = next();
  if (pool[index].next == kNone) nic.responses_tail = index;
  (before == kNone ? nic.responses : pool[before].next) = index;
}

// Gives the injection side of an interface its next packet: responses first, then the workload's.
template <typename F>
void TileRouter<F>::serve_nic(Partition& part, Node site, std::uint32_t n, Tick now) {
  Nic& nic = nics_[std::size_t{site} * fabric_.nics() + n];
  const Node node = site * fabric_.nics() + n;
  if (nic.free_at > now) {
    if (!nic.asleep) part.post(nic.free_at, {site, kWake, static_cast<std::uint8_t>(n), 0, 0});
    nic.asleep = true;
    return;
  }
  std::uint32_t index = kNone;
  Tick busy = 0;
  if (nic.responses != kNone && part.pool()[nic.responses].flits <= nic.space) {
    index = nic.responses;
    nic.responses = part.pool()[index].next;
    busy = injection_ticks(part.pool()[index]);
  } else if (now < hold_until_) {
    return;
  } else if (nic.returned != kNone) {
    index = nic.returned;
    if (part.pool()[index].flits > nic.space) return;
    nic.returned = part.pool()[index].next;
    busy = injection_ticks(part.pool()[index]);
    ++part.counters().resent;
  } else {
    if (nic.pending == kNone) {
      Send send;
      switch (part.workload().next(node, 0, now, sites_[site].random, send)) {
        case Next::idle:
          return;
        case Next::later:
          if (!nic.asleep) part.post(send.created, {site, kWake, static_cast<std::uint8_t>(n), 0, 0});
          nic.asleep = true;
          return;
        case Next::send:
          break;
      }
      Packet packet = packet_of(node, send);
      packet.flits = flits_of(packet);
      packet.next = kNone;
      nic.pending = part.pool().add(packet);
      ++part.counters().injected;
    }
    const Packet& packet = part.pool()[nic.pending];
    if (packet.flits > nic.space ||
        (cost_.outstanding != 0 && nic.outstanding + fabric_.packets_in(packet.payload) > cost_.outstanding))
      return;
    index = nic.pending;
    nic.pending = kNone;
    if (cost_.response_flits != 0) nic.outstanding += fabric_.packets_in(packet.payload);
    busy = request_ticks(packet);
  }
  const Packet& packet = part.pool()[index];
  nic.space -= packet.flits;
  nic.free_at = now + std::max<Tick>(1, busy);
  if (!nic.asleep) part.post(nic.free_at, {site, kWake, static_cast<std::uint8_t>(n), 0, 0});
  nic.asleep = true;
  part.post(now + cost_.latency_in,
            {site, kArrive, static_cast<std::uint8_t>(fabric_.ports() + n), 0, index});
}

// Phase two for the packets whose header came in this tick.
template <typename F>
inline void TileRouter<F>::route_arrivals(Partition& part, Node id) {
  Site& site = sites_[id];
  const View view(*this, id);
  while (site.arrived != kNone) {
    // By link, lowest first; more than one in a tick is rare.
    std::uint32_t best = site.arrived, before = kNone, best_before = kNone;
    for (std::uint32_t i = site.arrived; i != kNone; before = i, i = part.pool()[i].next)
      if (part.pool()[i].hints < part.pool()[best].hints) best = i, best_before = before;
    Packet& packet = part.pool()[best];
    (best_before == kNone ? site.arrived : part.pool()[best_before].next) = packet.next;
    packet.next = kNone;
    const Hop hop = fabric_.route(view, site.random, packet);
    if (hop.port < fabric_.ports() && packet.hops == 0 && (packet.flags & kNonMinimal))
      ++part.counters().nonminimal;
    Output& out = outputs_[std::size_t{id} * ports_ + hop.port];
    if (out.head[hop.vc] == kNone) {
      out.head[hop.vc] = best;
    } else {
      part.pool()[out.tail[hop.vc]].next = best;
    }
    out.tail[hop.vc] = best;
    out.queued = static_cast<std::uint16_t>(std::min<std::uint32_t>(0xffffu, out.queued + packet.flits));
    out.busy_vcs = static_cast<std::uint8_t>(out.busy_vcs | 1u << hop.vc);
    site.waiting |= std::uint64_t{1} << hop.port;
  }
}

template <typename F>
inline void TileRouter<F>::free_space(Partition& part, Node id, const Packet& packet, Tick at) {
  if (packet.hints >= fabric_.ports())
    return part.post(
        at, {id, kNicCredit, static_cast<std::uint8_t>(packet.hints - fabric_.ports()), 0, packet.flits});
  const Wire& from = wires_[std::size_t{id} * fabric_.ports() + packet.hints];
  part.signal(at + fabric_.latency(packet.hints), {from.peer, kCredit, from.back, packet.hold, packet.flits});
}

// Starts the next transfer of an idle output, if one can go.
template <typename F>
inline void TileRouter<F>::send(Partition& part, Node id, std::uint32_t port, Tick now) {
  Site& site = sites_[id];
  Output& out = outputs_[std::size_t{id} * ports_ + port];
  const bool link = port < fabric_.ports();
  int chosen = -1;
  Tick oldest = kNever;
  for (unsigned vcs = out.busy_vcs; vcs != 0; vcs &= vcs - 1) {
    const int v = std::countr_zero(vcs);
    const Packet& packet = part.pool()[out.head[v]];
    if (link && packet.flits > out.credits[v]) continue;
    if (chosen < 0 || packet.created < oldest) {
      chosen = v;
      oldest = packet.created;
    }
  }
  if (chosen < 0) return;
  const std::uint32_t index = out.head[chosen];
  Packet& packet = part.pool()[index];
  out.head[chosen] = packet.next;
  if (packet.next == kNone) out.busy_vcs = static_cast<std::uint8_t>(out.busy_vcs & ~(1u << chosen));
  if (out.busy_vcs == 0) site.waiting &= ~(std::uint64_t{1} << port);
  out.queued = static_cast<std::uint16_t>(out.queued - std::min<std::uint32_t>(out.queued, packet.flits));
  site.idle &= ~(std::uint64_t{1} << port);
  const std::uint8_t flits = packet.flits;
  const Tick ticks = link ? fabric_.serialise(port, flits)
                     : !carries_data(packet)
                         ? std::max<Tick>(1, Tick{cost_.response} * packets_of(packet))
                         : std::max<Tick>(1, cost_.eject_base * fabric_.packets_in(packet.payload) +
                                                 static_cast<Tick>(cost_.eject_per_byte * packet.payload));
  const Tick late = link && !error_chance_.empty() ? repeats(part, site, port, flits, ticks)
                    : !link && !cams_.empty()      ? receive_stall(part, packet, ticks, now)
                                                   : 0;
  free_space(part, id, packet, now + ticks + late);
  if (!link) {
    // Its last phit is no sooner here than the slower of the interface and the link that it came by let it.
    const Tick tail = carries_data(packet) ? injection_ticks(packet) : 0;
    const Tick by_link = packet.hints < fabric_.ports() ? fabric_.serialise(packet.hints, flits) : 0;
    part.post(now + ticks + late, {id, kDone, static_cast<std::uint8_t>(port), 0, 0});
    part.post(now + late + std::max({ticks, tail, by_link}) + cost_.latency_out,
              {id, kEjected, static_cast<std::uint8_t>(port), 0, index});
    return;
  }
  out.credits[chosen] = static_cast<std::uint16_t>(out.credits[chosen] - flits);
  ++packet.hops;
  Counters& counters = part.counters();
  ++counters.link_hops;
  counters.link_ticks += ticks + late;
  ++counters.vc_hops[static_cast<std::size_t>(chosen)];
  if (!link_busy_.empty())
    link_busy_[std::size_t{id} * fabric_.ports() + port] += static_cast<std::uint32_t>(ticks + late);
  const Wire& wire = wires_[std::size_t{id} * fabric_.ports() + port];
  part.post(now + ticks + late, {id, kDone, static_cast<std::uint8_t>(port), 0, 0});
  part.transfer(now + fabric_.latency(port) + late,
                {wire.peer, kArrive, wire.back, static_cast<std::uint8_t>(chosen), index});
}

template <typename F>
inline void TileRouter<F>::arbitrate(Partition& part, Node id, Tick now) {
  Site& site = sites_[id];
  if (site.out & kFailed) [[unlikely]]
    return bury(part, id, now);
  route_arrivals(part, id);
  for (std::uint32_t nics = site.refill; nics != 0; nics &= nics - 1)
    serve_nic(part, id, static_cast<std::uint32_t>(std::countr_zero(nics)), now);
  site.refill = 0;
  if (site.out & site.waiting) [[unlikely]]
    return_lost(part, id, now);
  for (std::uint64_t ready = site.idle & site.waiting; ready != 0; ready &= ready - 1)
    send(part, id, static_cast<std::uint32_t>(std::countr_zero(ready)), now);
}

template <typename F>
void TileRouter<F>::look(std::vector<VcUse>* vcs) const {
  vcs->resize(kVcs);
  for (std::size_t wire = 0; wire < wires_.size(); ++wire) {
    if (!in_service(static_cast<Node>(wire / fabric_.ports()), wire % fabric_.ports())) continue;
    const Output& out = outputs_[wire / fabric_.ports() * ports_ + wire % fabric_.ports()];
    for (std::size_t v = 0; v < kVcs; ++v)
      (*vcs)[v].add(std::uint32_t{out.capacity} - out.credits[v], out.capacity);
  }
}

template <typename F>
std::vector<std::string> TileRouter<F>::find_cycle(
    const std::vector<std::unique_ptr<Partition>>& parts) const {
  // From a blocked output to the output that a packet in its full far buffer waits for, until it closes.
  const auto pool_of = [&](Node site) -> const PacketPool& {
    for (auto& part : parts)
      if (part->owns(site)) return part->pool();
    return parts.front()->pool();
  };
  const std::size_t channels = std::size_t{sites()} * fabric_.ports() * kVcs;
  std::vector<std::uint32_t> seen(channels, 0);
  std::uint32_t walk = 0;
  for (std::size_t start = 0; start < channels; ++start) {
    ++walk;
    std::vector<std::size_t> path;
    std::size_t at = start;
    for (;;) {
      const auto vc = static_cast<std::uint8_t>(at % kVcs);
      const auto port = static_cast<std::uint32_t>(at / kVcs % fabric_.ports());
      const Node site = static_cast<Node>(at / kVcs / fabric_.ports());
      if (outputs_[std::size_t{site} * ports_ + port].head[vc] == kNone) break;
      if (seen[at] == walk) {
        std::vector<std::string> names;
        for (auto it = std::find(path.begin(), path.end(), at); it != path.end(); ++it)
          names.push_back(fmt::format("router {} link {} vc {}", *it / kVcs / fabric_.ports(),
                                      *it / kVcs % fabric_.ports(), *it % kVcs));
        return names;
      }
      if (seen[at] != 0) break;
      seen[at] = walk;
      path.push_back(at);
      const Wire& wire = wires_[std::size_t{site} * fabric_.ports() + port];
      const PacketPool& pool = pool_of(wire.peer);
      bool found = false;
      for (std::uint32_t p = 0; p < fabric_.ports() && !found; ++p)
        for (int v = 0; v < kVcs && !found; ++v) {
          const std::uint32_t head = outputs_[std::size_t{wire.peer} * ports_ + p].head[v];
          if (head == kNone || pool[head].hints != wire.back || pool[head].hold != vc) continue;
          at = (std::size_t{wire.peer} * fabric_.ports() + p) * kVcs + static_cast<std::size_t>(v);
          found = true;
        }
      if (!found) break;
    }
  }
  return {};
}

}  // namespace orrery::sim
