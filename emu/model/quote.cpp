// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/quote.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace orrery::model {

namespace {

// One aggregate that a message passes. On a torus line `position` hops of skew and the links used.
struct Stretch {
  std::uint32_t aggregate;
  std::uint32_t before;  // hops travelled before it
  std::int32_t skew;     // hops that time is skewed by
  std::uint32_t price;   // index into shared_link
  std::uint64_t links;
};

struct Path {
  std::uint32_t cls = 0, hops = 0;
  Picos latency;
  std::uint32_t stretches = 0;
  bool detoured = false;
  Stretch at[6];

  void add(std::uint32_t aggregate, std::uint32_t before, std::int32_t skew, std::uint32_t price,
           std::uint64_t links) {
    at[stretches++] = {aggregate, before, skew, price, links};
  }
};

constexpr std::uint64_t kAllLinks = ~std::uint64_t{0};

// Bits for positions first .. first + count - 1 of a line of n, in buckets where n > 64.
std::uint64_t stretch_bits(std::uint32_t first, std::uint32_t count, std::uint32_t n) {
  std::uint32_t last = first + count - 1;
  if (n > 64) {
    first = first * 64 / n;
    last = last * 64 / n;
  }
  const std::uint64_t upto = last >= 63 ? kAllLinks : (std::uint64_t{1} << (last + 1)) - 1;
  return upto & ~((std::uint64_t{1} << first) - 1);
}

void torus_path(const Pricing& p, NodeId src, NodeId dst, std::uint64_t seed, bool contended, Path* path) {
  const Torus& t = p.torus;
  const RouterId from = t.router_of(src), to = t.router_of(dst);
  const auto& g = t.grid();
  Coordinates at = t.router_coordinates(from);
  const Coordinates end = t.router_coordinates(to);
  const auto steps = t.steps_between(at, end, seed);
  for (std::size_t i = 0; i < 3; ++i) {
    if (steps[i] == 0) continue;
    path->cls |= 1u << i;
    path->hops += static_cast<std::uint32_t>(std::abs(steps[i]));
  }
  path->latency = p.hop * path->hops;
  if (!contended || path->hops == 0) return;
  // Direction order: a dimension's line lies at the coordinates reached when it is entered.
  const std::uint32_t base[3] = {0, 2 * g[1] * g[2], 2 * (g[1] * g[2] + g[0] * g[2])};
  std::uint32_t travelled = 0;
  for (int sign = 0; sign < 2; ++sign) {
    for (std::size_t i = 0; i < 3; ++i) {
      if (steps[i] == 0 || (steps[i] < 0) != (sign == 1)) continue;
      const std::uint32_t n = g[i], count = static_cast<std::uint32_t>(std::abs(steps[i]));
      const std::size_t a = i == 0 ? 1 : 0, b = i == 2 ? 1 : 2;
      const std::uint32_t aggregate =
          base[i] + 2 * (at.at[a] + g[a] * at.at[b]) + static_cast<std::uint32_t>(sign);
      // Positions along the direction of travel, so that plus and minus share the arithmetic.
      const std::uint32_t first = sign == 0 ? at.at[i] : n - 1 - at.at[i];
      const std::uint32_t straight = std::min(count, n - first);
      const auto skew = static_cast<std::int32_t>(first);
      path->add(aggregate, travelled, skew, static_cast<std::uint32_t>(i), stretch_bits(first, straight, n));
      if (count > straight) {
        path->add(aggregate, travelled + straight, 0, static_cast<std::uint32_t>(i),
                  stretch_bits(0, count - straight, n));
      }
      travelled += count;
      at.at[i] = end.at[i];
    }
  }
}

// Delay that the aggregate would cause a message whose head leaves at `head`, in picoseconds: what the
// adaptive choice compares.
std::int64_t bundle_load(const Pricing& p, LinkState* state, std::uint32_t aggregate, std::int64_t now,
                         std::int64_t head) {
  // One hop on, where a message without local links reserves it.
  const std::int64_t arrive = head + p.hop.count();
  if (state->kind() == LinkState::Kind::exact) return state->peek(aggregate, arrive) - arrive;
  const std::uint64_t used = state->count(aggregate, now, 0);
  return p.shared_link[0](used).count();
}

void dragonfly_path(const Pricing& p, const QuoteRequest& r, LinkState* state, std::int64_t head, NodeId src,
                    NodeId dst, Path* path) {
  const Dragonfly& d = p.dragonfly;
  const RouterId from = d.router_of(src), to = d.router_of(dst);
  if (from == to) return;
  const std::int64_t now = r.now.count();
  const std::uint32_t a = d.group_of_router(from), b = d.group_of_router(to);
  path->cls = a == b ? 1 : 2;
  const std::uint32_t groups = d.groups(), bundles = groups * groups;
  std::uint32_t via = groups;
  if (r.routing == Routing::hashed_non_minimal) {
    Route route;
    via = d.group_of_router(d.valiant(from, to, route_hash(src, dst), &route));
    path->hops = static_cast<std::uint32_t>(route.size());
  } else {
    path->hops = d.minimal_hops(from, to, mix64(r.seed));
  }
  if (state != nullptr) state->prefetch(a * groups + b);
  if (state != nullptr && a != b && groups > 2 && is_adaptive(r.routing)) {
    // Two non-minimal candidates against the one bundle that all minimal routes share.
    const AdaptiveBias bias = bias_of(r.routing);
    const std::int64_t direct = bundle_load(p, state, a * groups + b, now, head);
    const std::int64_t extra = p.shared_link[0](p.packet.payload).count() * bias.add;
    if (direct > extra) {
      Choices pick(mix64(r.seed ^ static_cast<std::uint64_t>(now)));
      std::int64_t lightest = direct;
      for (int i = 0; i < kNonMinimalCandidates; ++i) {
        const std::uint32_t c = pick.below(groups);
        if (c == a || c == b) continue;
        const std::int64_t load = std::max(bundle_load(p, state, a * groups + c, now, head),
                                           bundle_load(p, state, c * groups + b, now, head));
        const std::int64_t weighted = (load << bias.shift) + extra;
        if (weighted < lightest) {
          lightest = weighted;
          via = c;
        }
      }
      if (via != groups) {
        const RouterId root =
            via * Dragonfly::kRoutersPerGroup + pick.below(d.chassis_in(via) * Dragonfly::kSlots);
        path->hops = d.minimal_hops(from, root, mix64(r.seed)) + d.minimal_hops(root, to, mix64(r.seed + 1));
        path->detoured = true;
      }
    }
  }
  path->latency = p.hop * path->hops;
  if (state == nullptr) return;
  if (a != b) {
    path->add(bundles + from, 0, 0, 1, kAllLinks);
    const bool detour = via != groups && via != a && via != b;
    path->add(a * groups + (detour ? via : b), 1, 0, 0, kAllLinks);
    if (detour) path->add(via * groups + b, 4, 0, 0, kAllLinks);
  }
}

void tree_path(const Pricing& p, NodeId src, NodeId dst, bool contended, Path* path) {
  if (src == dst) return;
  const std::uint32_t level = FatTree::nca_level(src, dst);
  path->cls = level + 1;
  path->hops = 2 * level + 1;
  path->latency = p.tree_latency[path->cls];
  if (!contended || level == 0) return;
  // Subtrees of one level are numbered after those below; up and down alternate.
  std::uint32_t base = 0;
  for (std::uint32_t l = 0; l < level; ++l) base += p.nodes >> (2 * l);
  path->add(2 * (base + (src >> (2 * level))), 0, 0, level, kAllLinks);
  path->add(2 * (base + (dst >> (2 * level))) + 1, path->hops - 1, 0, level, kAllLinks);
}

void find_path(const Pricing& p, const QuoteRequest& r, LinkState* state, std::int64_t head, NodeId src,
               NodeId dst, Path* path) {
  switch (p.network) {
    case Network::gemini_torus:
    case Network::seastar_torus:
    case Network::bluegene_torus:
      return torus_path(p, src, dst, r.seed, state != nullptr, path);
    case Network::dragonfly:
      return dragonfly_path(p, r, state, head, src, dst, path);
    case Network::fat_tree:
      return tree_path(p, src, dst, state != nullptr, path);
    case Network::crossbar:
      return;
  }
}

// Takes the transmit side of a NIC: the start at or after `want`, and free again after `interval`.
std::int64_t take_transmit(NicCell& nic, std::int64_t want, std::int64_t interval) {
  std::int64_t free = nic.transmit_free.load(std::memory_order_relaxed);
  while (true) {
    const std::int64_t start = std::max(want, free);
    if (nic.transmit_free.compare_exchange_weak(free, start + interval, std::memory_order_relaxed))
      return start;
  }
}

// Two raisers at the same moment may leave the lower value: it only says that the interface is busy.
void raise(std::atomic<std::int64_t>& value, std::int64_t to) {
  if (value.load(std::memory_order_relaxed) < to) value.store(to, std::memory_order_relaxed);
}

// Waits of the head on its way, starting at `head`.
std::int64_t network_wait(const Pricing& p, const Path& path, std::uint64_t bytes, std::int64_t head,
                          std::int64_t now, LinkState* state) {
  std::int64_t waited = 0;
  for (std::uint32_t i = 0; i < path.stretches; ++i) {
    const Stretch& s = path.at[i];
    const PerByte price = p.shared_link[s.price];
    const std::int64_t length = price(bytes).count();
    const std::int64_t arrive = head + waited + p.hop.count() * s.before;
    if (state->kind() == LinkState::Kind::exact) {
      const std::int64_t skew = p.hop.count() * s.skew;
      // A later call cannot be earlier than `now`, less the skew of a whole line.
      const std::int64_t horizon = now - p.hop.count() * Route::kCapacity;
      waited += state->reserve(s.aggregate, arrive - skew, length, s.links, horizon) + skew - arrive;
    } else {
      // Round the end of a ring a line is met twice: its own bytes are no load.
      if (i > 0 && path.at[i - 1].aggregate == s.aggregate) continue;
      const std::uint64_t used = state->count(s.aggregate, now, bytes);
      const auto busy = static_cast<std::uint64_t>(price(used).count());
      const auto rho = static_cast<std::uint32_t>(std::min<std::uint64_t>(busy >> (22 - 8), 255));
      waited += length * queue_wait_256(rho) / 256;
    }
  }
  return waited;
}

}  // namespace

std::uint32_t path_hops(const Pricing& p, NodeId src, NodeId dst) {
  Path path;
  find_path(p, QuoteRequest{}, nullptr, 0, src, dst, &path);
  return path.hops;
}

Quote quote(const Pricing& p, const QuoteRequest& r, LinkState* state) {
  const OpPrice& op = p.ops[static_cast<std::size_t>(r.op)];
  const bool get = op.flow == Flow::get;
  // Data flows from `tx` to `rx`; a get's request goes the other way first.
  const NodeId tx = get ? r.dst : r.src, rx = get ? r.src : r.dst;
  const std::int64_t now = r.now.count();
  std::int64_t start = now + op.cpu.count();

  // All memory that the quote will touch is asked for before any of it is used.
  if (state != nullptr) {
    state->prefetch_nic(r.src);
    state->prefetch_receive(rx);
  }
  Path path;
  find_path(p, r, state, start + op.out.count(), tx, rx, &path);
  for (std::uint32_t i = 0; i < path.stretches; ++i) state->prefetch(path.at[i].aggregate);
  const std::int64_t latency = path.latency.count();

  // Requests leave the source's NIC one interval apart.
  const bool shared =
      state != nullptr && (state->nic(tx).receive_until.load(std::memory_order_relaxed) > start);
  const PerByte host = shared ? op.host_shared : op.host_lone;
  const PerByte path_price = p.path[is_adaptive(r.routing)][path.cls][shared];
  // A fat tree's circuit holds the NIC until the acknowledgement is back.
  const PerByte held = p.network == Network::fat_tree ? std::max(host, path_price) : host;
  const std::int64_t host_time = held(r.bytes).count();
  const bool past_inline = r.bytes > op.inline_limit;
  const std::int64_t interval = std::max(op.gap.count() + (past_inline ? op.beyond_gap.count() : 0),
                                         op.gap_add.count() + (get ? 0 : host_time));
  std::int64_t waited = 0;
  if (state != nullptr) {
    const std::int64_t begun = take_transmit(state->nic(r.src), start, interval);
    waited += begun - start;
    start = begun;
  }

  // The head of the data on the network.
  std::int64_t head = start + op.out.count();
  std::int64_t at_target = 0;
  if (get) {
    at_target = head + latency;
    head = at_target + op.turn.count();
    if (state != nullptr && tx != r.src) {
      const std::int64_t begun = take_transmit(state->nic(tx), head, host_time);
      waited += begun - head;
      head = begun;
    }
  }
  // The message streams at its slowest part.
  PerByte slowest = std::max(host, path_price);
  if (p.window_reciprocal != 0) {
    const auto round_trip = static_cast<std::uint64_t>(op.out.count() + 2 * latency + op.in.count());
    slowest = std::max(slowest, PerByte::from_scaled(round_trip * p.window_reciprocal >> PerByte::kShift));
  }
  std::int64_t stream = slowest(r.bytes).count();
  if (op.curved) {
    const std::uint64_t low = std::min(r.bytes, op.knee);
    stream = (op.below(low) + op.above(r.bytes - low)).count();
  }

  if (state != nullptr) {
    const std::int64_t links = network_wait(p, path, r.bytes, head, now, state);
    waited += links;
    head += links;
    const std::int64_t arrives = head + latency;
    const std::int64_t length = std::max(std::max(host, path_price)(r.bytes).count(), op.serve.count());
    std::int64_t received = arrives;
    if (state->kind() == LinkState::Kind::exact) {
      received = state->reserve_receive(rx, arrives, length, now);
    } else {
      const std::uint64_t used = state->count_receive(rx, now, r.bytes);
      const auto rho = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(static_cast<std::uint64_t>(host(used).count()) >> (22 - 8), 255));
      received += length * queue_wait_256(rho) / 256;
    }
    waited += received - arrives;
    head += received - arrives;
    raise(state->nic(rx).receive_until, received + length);
  }
  const std::int64_t landed = head + latency + stream + op.in.count() + (past_inline ? op.beyond.count() : 0);

  Quote q;
  q.cpu_busy = op.cpu;
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
      q.remote_event_at = Picos{at_target} + op.remote_event;
      q.local_event_at = Picos{landed} + op.back + op.local_event;
      break;
    case Flow::posted:
      q.remote_event_at = Picos{landed} + op.remote_event;
      q.local_event_at = Picos{start + op.out.count() + stream} + op.local_event;
      break;
  }
  return q;
}

}  // namespace orrery::model
