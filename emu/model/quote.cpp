// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/quote.hpp"

#include "emu/base/timed_path.hpp"
#include "emu/model/circuits.hpp"
#include "emu/model/dragonfly_path_inl.hpp"
#include "emu/model/path.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace orrery::model {

namespace {

// Takes the transmit side of a NIC: the start at or after `want`, and free again after `interval`. Of two
// processes that ask a decayed state at the same moment both may get the same start: a locked instruction
// would keep all that follows waiting for the lines that were asked for before it.
ORRERY_TIMED_PATH std::int64_t take_transmit(NicCell& nic, std::int64_t want, std::int64_t interval) {
  const std::int64_t start = std::max(want, nic.transmit_free.load(std::memory_order_relaxed));
  nic.transmit_free.store(start + interval, std::memory_order_relaxed);
  return start;
}

// The same of what the block engine sends, which is busy with it for `lasts`: it looks at a descriptor when
// the data of the one before has gone. A get's request is short: what is posted while it waits for the engine
// goes before it.
ORRERY_TIMED_PATH __attribute__((noinline)) std::int64_t take_engine(NicCell& nic, std::int64_t want,
                                                                     std::int64_t interval,
                                                                     std::int64_t lasts, bool get) {
  const std::int64_t free = std::max(want, nic.engine.load(std::memory_order_relaxed));
  const std::int64_t begun =
      get ? std::max(free, take_transmit(nic, want, interval)) : take_transmit(nic, free, interval);
  nic.engine.store(begun + lasts, std::memory_order_relaxed);
  return begun;
}

// Two raisers at the same moment may leave the lower value: it only says that the interface is busy.
void raise(std::atomic<std::int64_t>& value, std::int64_t to) {
  if (value.load(std::memory_order_relaxed) < to) value.store(to, std::memory_order_relaxed);
}

// A green or black link of a router that is not idle. The start of the message there.
// In an adaptive mode: two minimal candidates (the link; of black ones another copy) against going round by a
// third router, by the bias. May make the path longer.
ORRERY_TIMED_PATH __attribute__((noinline)) std::int64_t take_link(const Pricing& p, Routing routing,
                                                                   const Stretch& s, std::uint64_t bytes,
                                                                   bool shared, std::int64_t arrive,
                                                                   std::int64_t horizon,
                                                                   const LinkState& state, Path* path) {
  const PerByte price = p.shared_link[shared][kLocalPrice];
  const std::int64_t length = price(bytes).count(), thin = p.shared_link[shared][kSpreadPrice](bytes).count();
  LinePart link = part_of(s, state);
  const LinePart all = router_part(link.line, Dragonfly::kLocal);
  // Packets that are spread over the router's links are in every link's way.
  const std::int64_t past = state.peek_link(all, 0, arrive, length);
  if (s.kind == Stretch::spread) {
    const AdaptiveBias bias = bias_of(routing);
    std::int64_t direct = state.peek_link(link, 0, past, length);
    if (const std::uint32_t port = link.first; port >= Dragonfly::kGreen) {
      // The next of the three copies.
      const bool last = (port - Dragonfly::kGreen) % Dragonfly::kBlackPerPeer == Dragonfly::kBlackPerPeer - 1;
      const LinePart other = router_part(link.line, last ? port - (Dragonfly::kBlackPerPeer - 1) : port + 1);
      if (const std::int64_t start = state.peek_link(other, 0, past, length); start < direct) {
        direct = start;
        link = other;
      }
    }
    const std::int64_t round = state.peek_link(all, 0, arrive, thin);
    const std::int64_t extra = price(p.packet.payload).count() * bias.add;
    if (direct - arrive > ((round - arrive) << bias.shift) + extra) {
      ++path->hops;
      path->latency += p.hop;
      path->detoured = true;
      return arrive + state.reserve_line(all, 0, arrive, thin, horizon);
    }
  }
  return past + state.reserve_line(link, 0, past, length, horizon);
}

// The wait for what take_quiet() did not get. May make the path longer.
ORRERY_TIMED_PATH __attribute__((noinline)) std::int64_t wait_for_link(
    const Pricing& p, const QuoteRequest& r, const Stretch& s, std::int64_t arrive, std::int64_t length,
    bool shared, std::int64_t horizon, const LinkState& state, Path* path) {
  if (s.kind == Stretch::bundle)
    return state.reserve_bundle(state.bundle_at(s.cell), arrive, length, horizon) - arrive;
  if (s.kind != Stretch::line && !state.line_idle(state.line_at(s.cell), arrive))
    return take_link(p, r.routing, s, r.bytes, shared, arrive, horizon, state, path) - arrive;
  return state.reserve_line(part_of(s, state), p.hop.count(), arrive, length, horizon);
}

// What a message of `bytes` takes of each kind of shared link that its path can have: on a torus or a
// dragonfly the first `kinds`.
struct PricedLengths {
  PricedLengths(const Pricing& p, const Path& path, std::uint64_t bytes, bool shared, std::size_t kinds) {
    const auto& price = p.shared_link[shared];
    if (path.stretches == 0) return;
    for (std::size_t i = 0; i < kinds; ++i) of[i] = price[i](bytes).count();
  }
  std::int64_t of[kPathClasses];  // of those that it has
};

// Waits of the head on its way, starting at `head`, in an exact state. May make the path longer.
// `kSingle`: every stretch is the next link.
template <bool kDragonfly, bool kSingle>
std::int64_t wait_for_stretches(const Pricing& p, const QuoteRequest& r, bool shared, std::int64_t head,
                                std::int64_t soonest, const LinkState& state, Path* path) {
  const PricedLengths lengths(p, *path, r.bytes, shared, kSingle ? kSpreadPrice : 3);
  const std::int64_t hop = p.hop.count(), cable = p.global_cable.count(), planned = path->latency.count();
  std::int64_t late = 0;    // by waiting, and by links that it goes round
  std::int64_t cables = 0;  // between groups, behind it
  std::int64_t waited = 0, arrive = head;
  const Stretch *s = path->at, *const end = s + path->stretches;
  for (; s != end; ++s) {
    const std::int64_t length = lengths.of[s->price];
    if (!kSingle) arrive = head + late + cables + hop * s->before;
    const std::uint32_t links = kSingle ? 1 : s->links;
    if (length <= 0 || !LinkState::take_quiet(s->cell, s->first, links, hop, arrive, length, soonest))
        [[unlikely]] {
      const std::int64_t wait = wait_for_link(p, r, *s, arrive, length, shared, soonest, state, path);
      waited += wait;
      arrive += wait;
      late = waited + path->latency.count() - planned;
    }
    if constexpr (kDragonfly) {
      const std::int64_t more = s->kind == Stretch::bundle ? cable : 0;
      arrive += hop + more;
      cables += more;
    } else {
      arrive += hop;
    }
  }
  return waited;
}

template <bool kDragonfly>
std::int64_t wait_for_links(const Pricing& p, const QuoteRequest& r, NodeId tx, NodeId rx, bool shared,
                            std::int64_t head, const LinkState& state, Path* path) {
  // No later call can want anything sooner.
  const std::int64_t soonest = r.now.count() + p.lead.count();
  if constexpr (kDragonfly) {
    return is_adaptive(r.routing) ? wait_for_stretches<true, false>(p, r, shared, head, soonest, state, path)
                                  : wait_for_stretches<true, true>(p, r, shared, head, soonest, state, path);
  }
  if (p.network == Network::bluegene_torus && is_adaptive(r.routing)) {
    bool idle = true;
    for (std::uint32_t i = 0; i < path->stretches; ++i)
      idle &= state.line_idle(state.line_at(path->at[i].cell), soonest);
    if (!idle) return walk_torus(p, r.routing, r.seed, tx, rx, r.bytes, shared, head, soonest, state);
  }
  return wait_for_stretches<false, false>(p, r, shared, head, soonest, state, path);
}

// The mean waits on the way in a decayed state, in which the message is counted. `bundle`: receives the sums
// of a dragonfly's bundle, before the message, where they are such that a message waits.
template <bool kSingle>
std::int64_t wait_by_load(const Pricing& p, const QuoteRequest& r, bool shared, const Path& path,
                          DecayedSums* bundle = nullptr) {
  const DecayMoment now = r.now.count();
  const std::uint64_t bytes = r.bytes;
  std::int64_t waited = 0;
  for (const Stretch *s = path.at, *const end = s + path.stretches; s != end; ++s) {
    const std::uint32_t links = kSingle ? 1 : s->links;
    const DecayedSums sums = add_bytes(LinkState::counter_at(s->cell), now, bytes * links);
    // Not whether anything is left there, which is as good as random to a branch.
    if (sums.before + sums.current <= p.shared_idle[s->price]) [[likely]]
      continue;
    if (bundle != nullptr && s->kind == Stretch::bundle) *bundle = sums;
    // All the links that it stands for are as loaded as this one, on average.
    const PerByte price = p.shared_link[shared][s->price];
    const std::uint32_t busy = utilisation_256(price(steady_rate(sums, now)).count());
    waited += links * (price(r.bytes).count() * queue_wait_256(busy) / 256);
  }
  return waited;
}

// The same for an adaptive message between a dragonfly's groups, which goes over a third one where its bundle
// is loaded. May change the path. The bundle is counted in before it is known to be light enough, as it
// mostly is: read first and counted in later, its line would be awaited twice where others write it, and all
// others after it.
std::int64_t wait_or_detour(const Pricing& p, const QuoteRequest& r, NodeId tx, NodeId rx, bool shared,
                            const LinkState& state, Path* path) {
  const DecayMoment now = r.now.count();
  DecayedSums bundle{};
  const std::int64_t waited = wait_by_load<true>(p, r, shared, *path, &bundle);
  if (bundle_wait(p, steady_rate(bundle, now), r.bytes) <= detour_past(p, r.routing)) [[likely]]
    return waited;
  for (const Stretch *s = path->at, *const end = s + path->stretches; s != end; ++s)
    take_bytes_back(LinkState::counter_at(s->cell), now, r.bytes);
  choose_group(p, r.routing, r.seed, r.bytes, r.now.count(), 0, tx, rx, state, path);
  return wait_by_load<true>(p, r, shared, *path);
}

// A message over a fat tree: a circuit for each of its packets, one after the other. Times in picoseconds.
struct Circuits {
  Circuits(const Pricing& p, PerByte host, bool shared, std::uint64_t bytes, std::int64_t latency)
      : packets(bytes <= p.packet.payload ? 1 : (bytes + p.packet.payload - 1) / p.packet.payload) {
    const PerByte slowest = std::max(host, p.shared_link[shared][0]);
    carries = slowest(p.packet.payload).count();
    // It stands until the data is through, and at least for a round trip.
    stands = std::max(carries, 2 * latency);
    const auto before = static_cast<std::int64_t>(packets) - 1;
    const std::int64_t last = std::max(slowest(bytes).count() - before * carries, std::int64_t{0});
    all = before * stands + std::max(last, 2 * latency);
    stream = before * stands + last;
  }
  std::uint64_t packets;
  std::int64_t carries, stands;  // of a full packet
  std::int64_t all;              // how long they stand
  std::int64_t stream;           // from the first's head to the last's tail
};

// How many of a message's bytes count for others when its source's circuits come one after the other from
// `now` on, each when the last is over: no more than have passed. `stand`: how long this one's would.
std::uint64_t bytes_that_pass(std::uint64_t bytes, std::int64_t now, std::int64_t stand, const NicCell& nic) {
  const std::int64_t until = std::max(nic.engine.load(std::memory_order_relaxed), now - kCircuitsAhead);
  const std::int64_t room = std::max(now - until, std::int64_t{0});
  if (room >= stand) [[likely]]
    return bytes;
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * static_cast<double>(room) /
                                    static_cast<double>(stand));
}
// They have been counted, and stood so long.
void have_passed(std::int64_t now, std::int64_t stood, NicCell& nic) {
  const std::int64_t until = std::max(nic.engine.load(std::memory_order_relaxed), now - kCircuitsAhead);
  nic.engine.store(std::max(until, std::min(now, until + stood)), std::memory_order_relaxed);
}

// `op` by itself and not inlined: else its place among the prices is worked out again for each number of it.
// `state`: of what is kept, null where that is nothing.
template <Kept kKept, bool kDragonfly>
__attribute__((noinline)) Quote quote_op(const Pricing& p, const OpPrice& op, const QuoteRequest& r,
                                         LinkState* state) {
  constexpr bool kState = kKept != Kept::nothing, kExact = kKept == Kept::intervals;
  constexpr auto kKind = kExact ? LinkState::Kind::exact : LinkState::Kind::decayed;
  const auto nic = [state](NodeId node) -> NicCell& { return state->nic_of<kKind>(node); };
  const bool get = op.flow == Flow::get;
  // Data flows from `tx` to `rx`; a get's request goes the other way first.
  const NodeId tx = get ? r.dst : r.src, rx = get ? r.src : r.dst;
  const std::int64_t now = r.now.count();
  std::int64_t start = now + op.cpu.count();

  // All memory that the quote will touch is asked for before any of it is used.
  if constexpr (kState) {
    prefetch_to_write(&nic(r.src));
    prefetch_to_write(&nic(r.dst));
  }
  Path path;
  if constexpr (kDragonfly)
    dragonfly_path<kKept>(p, r.routing, r.seed, tx, rx, state, &path);
  else
    find_other_path<kKept>(p, r.routing, r.seed, tx, rx, state, &path);
  // A NIC that receives meanwhile answers what it gets, and shares its host interface and the links on its
  // way with that. What ends before half of this message has gone makes no difference.
  const std::int64_t alone = op.host_lone(r.bytes).count();
  const bool shared = kState && nic(tx).receive_until.load(std::memory_order_relaxed) > start + alone / 2;
  // The path's class last: it is as good as random to a branch.
  const bool may_detour = kState && kDragonfly && is_adaptive(r.routing) && path.cls == 2;
  std::int64_t links = 0;  // what it waits for them
  if (kExact && may_detour) {
    choose_group(p, r.routing, r.seed, r.bytes, now, start + op.out.count(), tx, rx, *state, &path);
  } else if constexpr (kKept == Kept::counters) {
    links = may_detour ? wait_or_detour(p, r, tx, rx, shared, *state, &path)
                       : wait_by_load<kDragonfly>(p, r, shared, path);
  }
  const std::int64_t latency = path.latency.count();

  // Requests leave the source's NIC one interval apart.
  const PerByte host = shared ? op.host_shared : op.host_lone;
  const PerByte path_price = p.path[is_adaptive(r.routing)][path.cls][shared];
  // A fat tree's circuit holds the NIC until the acknowledgement is back.
  const bool circuit = !kDragonfly && p.network == Network::fat_tree && path.cls != 0;
  std::optional<Circuits> circuits;
  std::optional<CircuitWay> way;
  if (circuit) circuits.emplace(p, host, shared, r.bytes, latency);
  if (kState && circuit) way.emplace(p, tx, rx, state->circuits(), kExact, r.seed);
  std::int64_t host_time = alone;
  if (circuit)
    host_time = circuits->all;
  else if (shared) [[unlikely]]
    host_time = op.host_shared(r.bytes).count();
  const bool past_inline = r.bytes > op.inline_limit;
  const std::int64_t interval = std::max(op.gap.count() + (past_inline ? op.beyond_gap.count() : 0),
                                         op.gap_add.count() + (get ? 0 : host_time));
  std::int64_t waited = 0;
  if constexpr (kState) {
    const bool by_engine = op.serial.count() > 0 && !circuit;
    const std::int64_t begun =
        by_engine ? take_engine(nic(r.src), start, interval, op.serial.count() + host_time, get)
                  : take_transmit(nic(r.src), start, interval);
    waited += begun - start;
    start = begun;
  }

  // The head of the data on the network.
  std::int64_t head = start + op.out.count();
  std::int64_t at_target = 0;
  if (get) {
    at_target = head + latency;
    head = at_target + op.turn.count();
    if (kState && tx != r.src) {
      const std::int64_t begun = take_transmit(nic(tx), head, host_time);
      waited += begun - head;
      head = begun;
    }
  }
  // The message streams at its slowest part; circuits at their own pace.
  PerByte slowest = circuit ? PerByte{} : std::max({host, path_price, op.store});
  if (p.window_reciprocal != 0) {
    const auto round_trip = static_cast<std::uint64_t>(op.out.count() + 2 * latency + op.in.count());
    slowest = std::max(slowest, PerByte::from_scaled(round_trip * p.window_reciprocal >> PerByte::kShift));
  }
  // Its links in parallel carry different packets: one packet takes the time of one link.
  const std::int64_t least =
      circuit ? circuits->stream
              : p.path[0][path.cls][shared](std::min<std::uint64_t>(r.bytes, p.packet.payload)).count();
  std::int64_t stream = std::max(slowest(r.bytes).count(), least);
  if (op.curved) {
    const std::uint64_t low = std::min(r.bytes, op.knee);
    stream = (op.below(low) + op.above(r.bytes - low)).count();
  }

  if constexpr (kState) {
    if constexpr (kExact) links = wait_for_links<kDragonfly>(p, r, tx, rx, shared, head, *state, &path);
    std::int64_t behind = 0;  // other circuits' data
    if (circuit) {
      const CircuitWay::Waits w = way->waits(now, circuits->carries, circuits->stands);
      const auto packets = static_cast<std::int64_t>(circuits->packets);
      links = packets * w.channels;
      behind = packets * w.data;
    }
    waited += links;
    // Links that it went round add to the data's way, not to the response's.
    head += links + path.latency.count() - latency;
    const std::int64_t arrives = head + latency;
    // A slow path leaves the receiver time for others.
    const std::int64_t length = std::max(host_time + behind, op.serve.count());
    std::int64_t received = arrives;
    std::uint64_t counts = r.bytes;
    if (circuit) counts = bytes_that_pass(r.bytes, now, arrives + length - start, nic(tx));
    if constexpr (kExact) {
      received = state->reserve_receive(rx, arrives, length, now + p.lead.count());
    } else {
      const DecayMoment moment = now;
      const DecayedSums sums = state->add_received(rx, moment, counts);
      const bool alone = circuit && state->same_source(rx, tx);
      if (!alone && !is_idle(host(sums.before + sums.current).count()))
        received += length * queue_wait_256(utilisation_256(host(steady_rate(sums, moment)).count())) / 256;
    }
    waited += received - arrives + behind;
    head += received - arrives + behind;
    raise(nic(rx).receive_until, received + length);
    if (circuit) {
      way->count(now, counts);
      have_passed(now, received + length - start, nic(tx));
      // It holds its source while it waits for links and for the receiver.
      if (!get) raise(nic(tx).transmit_free, received + length);
    }
  }
  const std::int64_t landed = head + latency + stream + op.in.count() + (past_inline ? op.beyond.count() : 0);

  const Picos stored = op.store(r.bytes);
  Quote q;
  q.cpu_busy = op.cpu + stored;
  q.waited = Picos{waited};
  q.hops = static_cast<std::uint16_t>(path.hops);
  q.detoured = path.detoured;
  q.data_at = Picos{landed};
  switch (op.flow) {
    case Flow::put:
      q.remote_event_at = Picos{landed} + op.remote_event;
      q.local_event_at = Picos{landed + latency} + op.turn + op.back + op.local_event;
      break;
    case Flow::get:
      // Of its requests the last comes there last.
      q.remote_event_at = Picos{at_target} + stored + op.remote_event;
      q.local_event_at = Picos{landed} + op.back + op.local_event;
      break;
    case Flow::posted:
      q.remote_event_at = Picos{landed} + op.remote_event;
      q.local_event_at = Picos{start + op.out.count() + stream} + op.local_event;
      break;
  }
  return q;
}

}  // namespace

std::uint32_t path_hops(const Pricing& p, NodeId src, NodeId dst) {
  Path path;
  find_path(p, Routing::adaptive_0, 0, src, dst, nullptr, &path);
  return path.hops;
}

ORRERY_TIMED_PATH Quote quote(const Pricing& p, const QuoteRequest& r, LinkState* state) {
  const OpPrice& op = p.ops[static_cast<std::size_t>(r.op)];
  const auto quote_with = [&]<Kept kKept> {
    return p.network == Network::dragonfly ? quote_op<kKept, true>(p, op, r, state)
                                           : quote_op<kKept, false>(p, op, r, state);
  };
  switch (kept_in(state)) {
    case Kept::intervals:
      return quote_with.operator()<Kept::intervals>();
    case Kept::counters:
      return quote_with.operator()<Kept::counters>();
    case Kept::nothing:
      break;
  }
  return quote_with.operator()<Kept::nothing>();
}

}  // namespace orrery::model
