// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/workload/traffic.hpp"

#include "emu/sim/tile/torus_grid.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace orrery::sim {

Shuffle::Shuffle(std::uint32_t n) : n_(n), half_bits_((std::bit_width(n > 1 ? n - 1 : 1u) + 1) / 2) {}

std::uint32_t Shuffle::at(std::uint32_t i, std::uint64_t key) const {
  const std::uint32_t mask = (1u << half_bits_) - 1;
  do {
    std::uint32_t left = i >> half_bits_, right = i & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t f = Random::mix(right + 0x9e3779b97f4a7c15u * (key + round + 1));
      const std::uint32_t swapped = left ^ (static_cast<std::uint32_t>(f >> 40) & mask);
      left = right;
      right = swapped;
    }
    i = left << half_bits_ | right;
  } while (i >= n_);
  return i;
}

namespace {
constexpr const char* kPatternNames[] = {"uniform",        "neighbour", "hot-spot",  "hot-region",
                                         "bit-complement", "tornado",   "transpose", "permutation"};
}

bool pattern_named(std::string_view name, Pattern* out) {
  for (std::size_t i = 0; i < std::size(kPatternNames); ++i)
    if (name == kPatternNames[i]) {
      *out = static_cast<Pattern>(i);
      return true;
    }
  return false;
}

const char* pattern_name(Pattern pattern) { return kPatternNames[static_cast<std::size_t>(pattern)]; }

Destinations::Destinations(Pattern pattern, const Box& box, double hot_fraction,
                           std::array<std::uint32_t, 3> hot_sides, std::uint64_t seed)
    : pattern_(pattern),
      box_(box),
      nodes_(box.nodes()),
      hot_chance_(as_chance(hot_fraction)),
      hot_sides_(hot_sides),
      shuffle_(box.nodes()),
      seed_(seed) {}

Node Destinations::pick(Node node, Random& random) const {
  const auto& side = box_.sides;
  const Node x = node % side[0], y = node / side[0] % side[1], z = node / (side[0] * side[1]);
  const auto id = [&](Node a, Node b, Node c) { return a + side[0] * (b + side[1] * c); };
  switch (pattern_) {
    case Pattern::uniform:
      return other(node, random);
    case Pattern::neighbour: {
      std::array<Node, 6> near;
      std::uint32_t count = 0;
      const std::array<Node, 3> at{x, y, z};
      for (std::size_t d = 0; d < 3; ++d) {
        if (side[d] < 2) continue;
        for (Node step : {Node{1}, side[d] - 1}) {
          std::array<Node, 3> to = at;
          to[d] = (at[d] + step) % side[d];
          near[count++] = id(to[0], to[1], to[2]);
        }
      }
      return near[random.below(count)];
    }
    case Pattern::hot_spot:
      return random.chance(hot_chance_) ? 0 : other(node, random);
    case Pattern::hot_region:
      if (random.chance(hot_chance_)) {
        const Node hot =
            id(random.below(hot_sides_[0]), random.below(hot_sides_[1]), random.below(hot_sides_[2]));
        if (hot != node) return hot;
      }
      return other(node, random);
    case Pattern::complement:
      return nodes_ - 1 - node;
    case Pattern::tornado: {
      const auto far = [](Node a, Node n) { return (a + (n - 1) / 2) % n; };
      return id(far(x, side[0]), far(y, side[1]), far(z, side[2]));
    }
    case Pattern::transpose:
      return id(y, z, x);
    case Pattern::permutation:
      return shuffle_.at(node, seed_);
  }
  return node;
}

RateTraffic::RateTraffic(const Destinations& where, Node nodes, const Options& options)
    : where_(where),
      options_(options),
      streams_(std::size_t{nodes} * (options.fifos + options.urgent_fifos), 0) {
  if (options.packets_per_node_tick <= 0) return;
  const double all = 1 / options.packets_per_node_tick * (1 << kFraction);
  mean_gap_ = options.fifos * all;
  if (options.urgent_fifos != 0) {
    mean_gap_ /= 1 - options.urgent_share;
    urgent_gap_ = options.urgent_fifos * all / options.urgent_share;
  }
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Random random(options.seed ^ 0x5eedu, i);
    const auto fifo = static_cast<std::uint32_t>(i % (options.fifos + options.urgent_fifos));
    streams_[i] = static_cast<std::uint64_t>(-std::log(random.unit()) * mean_gap(fifo));
  }
}

Next RateTraffic::next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) {
  out.created = now;
  if (mean_gap_ > 0) {
    std::uint64_t& stream = streams_[std::size_t{node} * (options_.fifos + options_.urgent_fifos) + fifo];
    out.created = (stream >> kFraction) + 1;
    if (out.created > now) return Next::later;
    stream += static_cast<std::uint64_t>(-std::log(random.unit()) * mean_gap(fifo));
  }
  out.dst = where_.pick(node, random);
  if (out.dst == node) return Next::idle;
  out.payload = options_.payload;
  if (options_.payload_low != 0)
    out.payload = static_cast<std::uint16_t>(options_.payload_low +
                                             random.below(options_.payload - options_.payload_low + 1u));
  out.flags = options_.flags;
  if (options_.urgent_fifos != 0
          ? fifo >= options_.fifos
          : options_.urgent_share > 0 && random.chance(as_chance(options_.urgent_share)))
    out.flags |= kPriority;
  return Next::send;
}

AllToAll::AllToAll(Node nodes, const Options& options) : AllToAll(Box{{nodes, 1, 1}}, 1, options) {}

AllToAll::AllToAll(const Box& box, std::uint32_t dims, const Options& options)
    : options_(options), nodes_(box.nodes()), set_size_(1), box_(box), dims_(dims), shuffle_(1) {
  for (std::size_t d = 0; d < 3; ++d)
    if (dims >> d & 1) set_size_ *= box.sides[d];
  shuffle_ = Shuffle(set_size_);
  per_pair_ = (options.bytes + options.payload_max - 1) / options.payload_max;
  total_ = per_pair_ * set_size_ * options.repeat;  // the turns at itself are skipped
  allot();
}

AllToAll::AllToAll(Node nodes, std::vector<Node> members, const Options& options)
    : AllToAll(Box{{static_cast<Node>(members.size()), 1, 1}}, 1, options) {
  nodes_ = nodes;
  members_ = std::move(members);
  rank_.assign(nodes, ~0u);
  for (std::size_t i = 0; i < members_.size(); ++i) rank_[members_[i]] = static_cast<std::uint32_t>(i);
  allot();
}

void AllToAll::allot() {
  rounds_ = (per_pair_ + options_.burst - 1) / options_.burst;
  sent_.assign(std::size_t{nodes_} * (options_.finite_fifos ? 1 : options_.fifos), 0);
  if (options_.order == Order::random && options_.burst > 1)
    at_.assign(std::size_t{nodes_} * options_.fifos, Burst());
  if (options_.order == Order::shift && (options_.in_step || options_.ahead != 0)) owed_.assign(nodes_, 0);
  most_owed_ = static_cast<std::int64_t>(
      options_.ahead /
      std::max<std::uint64_t>(1, std::min<std::uint64_t>(options_.bytes, options_.payload_max)));
}

bool AllToAll::delivered(Node node, const Packet&, Tick, bool) {
  return !owed_.empty() && --owed_[node] == (most_owed_ > 0 ? most_owed_ - 1 : 0);
}

// Whether packet `k` of the node's order has to wait for what is to arrive.
bool AllToAll::must_wait(Node node, std::uint64_t k) const {
  if (owed_.empty()) return false;
  return most_owed_ > 0 ? owed_[node] >= most_owed_ : k % per_pair_ == 0 && owed_[node] > 0;
}

// Rank of `node` in its set; false if it is in none.
bool AllToAll::place(Node node, Node* rank, Node* base) const {
  if (!members_.empty()) {
    *rank = rank_[node];
    *base = 0;
    return rank_[node] != ~0u;
  }
  Node r = 0, scale = 1, stride = 1, rest = node;
  for (std::size_t d = 0; d < 3; ++d) {
    const Node at = rest % box_.sides[d];
    rest /= box_.sides[d];
    if (dims_ >> d & 1) {
      r += at * scale;
      scale *= box_.sides[d];
      node -= at * stride;
    }
    stride *= box_.sides[d];
  }
  *rank = r;
  *base = node;
  return true;
}

Node AllToAll::member(Node base, Node rank) const {
  if (!members_.empty()) return members_[rank];
  Node node = base, stride = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    if (dims_ >> d & 1) {
      node += rank % box_.sides[d] * stride;
      rank /= box_.sides[d];
    }
    stride *= box_.sides[d];
  }
  return node;
}

void AllToAll::fill_in(Node base, Node to, std::uint64_t piece, Tick now, Send& out) const {
  const std::uint64_t left = options_.bytes - piece * options_.payload_max;
  out.dst = member(base, to);
  out.payload = static_cast<std::uint16_t>(left < options_.payload_max ? left : options_.payload_max);
  out.flags = static_cast<std::uint8_t>(options_.flags | (piece != 0 ? kFollows : 0) |
                                        (piece + 1 != per_pair_ ? kMore : 0));
  out.tag = static_cast<std::uint32_t>(piece);
  out.created = now;
}

// Whether packet (or burst) `number` of the node's order lies in this FIFO: that of the direction in which it
// has furthest to go, one of equal ones drawn. Its hint bits are set: half way round the FIFO and they must
// agree.
bool AllToAll::belongs_in(std::uint32_t fifo, Node node, Node to, std::uint64_t number, Send& out) const {
  const TorusGrid grid(box_.sides);
  const TorusGrid::Packed from = grid.coordinates(node), target = grid.coordinates(to);
  const std::uint64_t draw =
      Random::mix(Random::mix(options_.seed + 0xf1f0) + (std::uint64_t{node} << 40) + number);
  out.hints = grid.hints(from, target, static_cast<std::uint32_t>(draw & 7), options_.open);
  std::uint32_t furthest = 0;
  unsigned ties = 0;
  for (unsigned left = out.hints; left != 0; left &= left - 1) {
    const std::uint32_t hops = grid.hops(from, target, std::countr_zero(left));
    ties = (hops > furthest ? 0 : ties) | (hops >= furthest ? left & -left : 0);
    furthest = std::max(furthest, hops);
  }
  for (auto skip = (draw >> 32) * static_cast<unsigned>(std::popcount(ties)) >> 32; skip != 0; --skip)
    ties &= ties - 1;
  return std::countr_zero(ties) == static_cast<int>(fifo);
}

Next AllToAll::next_of_burst(Node node, Node rank, Node base, std::uint32_t fifo, Tick now, Send& out) {
  Burst& burst = at_[std::size_t{node} * options_.fifos + fifo];
  std::uint64_t& sent = sent_[options_.finite_fifos ? node : std::size_t{node} * options_.fifos + fifo];
  for (;;) {
    if (burst.done == 0) {
      burst.number = options_.finite_fifos || every_fifo_walks_all() ? sent : sent * options_.fifos + fifo;
      if (burst.number >= rounds_ * set_size_ * options_.repeat) return Next::idle;
      ++sent;
    }
    const std::uint64_t round = burst.number / set_size_;
    const std::uint64_t piece = round % rounds_ * options_.burst + burst.done;
    const Node to = shuffle_.at(static_cast<Node>(burst.number % set_size_),
                                options_.seed * 0x9e3779b97f4a7c15u + node + (round << 32));
    if (to == rank ||
        (every_fifo_walks_all() && !belongs_in(fifo, node, member(base, to), burst.number, out))) {
      burst.done = 0;
      continue;
    }
    if (++burst.done == options_.burst || piece + 1 == per_pair_) burst.done = 0;
    fill_in(base, to, piece, now, out);
    return Next::send;
  }
}

Next AllToAll::next(Node node, std::uint32_t fifo, Tick now, Random&, Send& out) {
  Node rank, base;
  if (!place(node, &rank, &base)) return Next::idle;
  if (!at_.empty()) return next_of_burst(node, rank, base, fifo, now, out);
  // Infinite FIFOs: before the start FIFO f was given packets f, f + 6, f + 12, ... or those of its
  // direction.
  std::uint64_t& sent = sent_[options_.finite_fifos ? node : std::size_t{node} * options_.fifos + fifo];
  for (;;) {
    const std::uint64_t k =
        options_.finite_fifos || every_fifo_walks_all() ? sent : sent * options_.fifos + fifo;
    if (k >= total_) return Next::idle;
    if (must_wait(node, k)) return Next::idle;
    ++sent;
    Node to;
    std::uint64_t piece;
    if (options_.order == Order::random) {
      const std::uint64_t round = k / set_size_;
      piece = round % per_pair_;
      to = shuffle_.at(static_cast<Node>(k % set_size_),
                       options_.seed * 0x9e3779b97f4a7c15u + node + (round << 32));
    } else {
      piece = k % per_pair_;
      const std::uint64_t step = k / per_pair_;
      const Node shift =
          shuffle_.at(static_cast<Node>(step % set_size_), options_.seed + 0x51f7 + (step / set_size_));
      to = static_cast<Node>((std::uint64_t{rank} + shift) % set_size_);
    }
    if (to == rank) continue;
    if (every_fifo_walks_all() && !belongs_in(fifo, node, member(base, to), k, out)) continue;
    fill_in(base, to, piece, now, out);
    if (!owed_.empty()) ++owed_[node];
    return Next::send;
  }
}

std::uint64_t AllToAll::expected_packets() const {
  const std::uint64_t senders = members_.empty() ? nodes_ : members_.size();
  return senders * (set_size_ - 1) * per_pair_ * options_.repeat;
}

JobTraffic::JobTraffic(Node nodes, const std::vector<Node>& members, const AllToAll::Options& job,
                       const RateTraffic::Options& background, bool busy)
    : job_(nodes, members, job),
      background_(Destinations(Pattern::uniform, Box{{nodes, 1, 1}}, 0, {1, 1, 1}, background.seed), nodes,
                  background),
      is_member_(nodes, 0),
      busy_(busy) {
  for (const Node node : members) is_member_[node] = 1;
  for (Node node = 0; node < nodes; ++node)
    if (!is_member_[node]) others_.push_back(node);
}

Next JobTraffic::next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) {
  if (is_member_[node]) return job_.next(node, fifo, now, random, out);
  if (!busy_ || others_.size() < 2) return Next::idle;
  const Next next = background_.next(node, fifo, now, random, out);
  // Uniform among the others; the draw of the stream's own destination is replaced.
  while (next == Next::send && (out.dst == node || is_member_[out.dst]))
    out.dst = others_[random.below(static_cast<std::uint32_t>(others_.size()))];
  return next;
}

}  // namespace orrery::sim
