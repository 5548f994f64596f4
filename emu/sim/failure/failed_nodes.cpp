// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/failure/failed_nodes.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

namespace orrery::sim {

namespace {

std::uint8_t hint_of(std::uint8_t hints, int dim) {
  return static_cast<std::uint8_t>(hints & (9u << dim));  // the dimension's bits: d and d + 3
}

// "1.0.3": a node by its coordinates.
bool parse_node(const std::string& word, const TorusGrid& grid, Node* out) {
  unsigned x = 0, y = 0, z = 0;
  char rest = 0;
  if (std::sscanf(word.c_str(), "%u.%u.%u%c", &x, &y, &z, &rest) != 3) return false;
  if (x >= grid.side(0) || y >= grid.side(1) || z >= grid.side(2)) return false;
  *out = grid.node(TorusGrid::pack(x, y, z));
  return true;
}

}  // namespace

Refusal FailedNodes::make(const BglConfig& config, const std::vector<Node>& nodes, FailedNodes* out) {
  FailedNodes made;
  made.grid_ = TorusGrid(config.sides);
  made.order_ = config.order;
  made.fixed_ = config.deterministic;
  made.nodes_ = nodes;
  if (nodes.size() > kMost)
    return {
        fmt::format("{} failed nodes: expected at most {}, that hint bits lead round", nodes.size(), kMost)};
  for (std::size_t d = 0; d < 3; ++d)
    if (config.sides[d] < 3 || !config.closed[d])
      return {fmt::format("failed nodes on {}x{}x{}: expected three closed sides of at least 3 nodes",
                          config.sides[0], config.sides[1], config.sides[2])};
  for (const Node node : nodes) {
    const TorusGrid::Packed at = made.grid_.coordinates(node);
    for (const TorusGrid::Packed other : made.at_) {
      int same = 0;
      for (int d = 0; d < 3; ++d) same += TorusGrid::at(at, d) == TorusGrid::at(other, d);
      if (same >= 2)
        return {fmt::format("failed nodes {}.{}.{} and {}.{}.{} are colinear: expected no two on one line",
                            TorusGrid::at(other, 0), TorusGrid::at(other, 1), TorusGrid::at(other, 2),
                            TorusGrid::at(at, 0), TorusGrid::at(at, 1), TorusGrid::at(at, 2))};
    }
    made.at_.push_back(at);
  }
  *out = std::move(made);
  return {};
}

Refusal FailedNodes::parse(const std::string& words, const BglConfig& config, FailedNodes* out) {
  const TorusGrid grid(config.sides);
  std::vector<Node> nodes;
  if (words.size() == 1 && words[0] >= '1' && words[0] <= '3') {
    // Drawn until they are not colinear; the first draws decide, so that two are among three.
    Random random(config.seed, 0x64656164u);
    const auto count = static_cast<std::size_t>(words[0] - '0');
    FailedNodes tried;
    for (int draws = 0; nodes.size() < count && draws < 1000; ++draws) {
      nodes.push_back(random.below(grid.nodes()));
      if (make(config, nodes, &tried).refused()) nodes.pop_back();
    }
    if (nodes.size() < count) nodes.assign(count, 0);  // for make() to say why
    return make(config, nodes, out);
  }
  for (std::size_t from = 0; from <= words.size();) {
    const std::size_t comma = std::min(words.find(',', from), words.size());
    Node node = 0;
    if (!parse_node(words.substr(from, comma - from), grid, &node))
      return {
          fmt::format("failed nodes '{}': expected 1 to {}, or as many coordinates of {}x{}x{} such as "
                      "1.0.2,0.1.1",
                      words, kMost, config.sides[0], config.sides[1], config.sides[2])};
    nodes.push_back(node);
    from = comma + 1;
  }
  return make(config, nodes, out);
}

bool FailedNodes::failed(Node node) const {
  return std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end();
}

std::vector<BglFault> FailedNodes::links() const {
  std::vector<BglFault> out;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    for (int d = 0; d < 6; ++d) {
      out.push_back({nodes_[i], d});
      out.push_back({grid_.step(nodes_[i], at_[i], d), reverse_of(d)});
    }
  return out;
}

// Is `at` where a packet can be in a dimension, from its first coordinate to its last one by its hint?
bool FailedNodes::within(TorusGrid::Packed from, TorusGrid::Packed to, std::uint8_t hints, int dim,
                         TorusGrid::Packed at) const {
  const std::uint32_t n = grid_.side(dim), first = TorusGrid::at(from, dim), last = TorusGrid::at(to, dim),
                      here = TorusGrid::at(at, dim);
  const std::uint8_t hint = hint_of(hints, dim);
  if (hint == 0) return here == first;
  const auto steps = [&](std::uint32_t a, std::uint32_t b) { return (b + n - a) % n; };
  return hint < 8 ? steps(first, here) <= steps(first, last) : steps(here, first) <= steps(last, first);
}

// Does a failed node lie in the box that a packet can be in?
bool FailedNodes::on_box(TorusGrid::Packed from, TorusGrid::Packed to, std::uint8_t hints) const {
  return std::any_of(at_.begin(), at_.end(), [&](TorusGrid::Packed at) {
    return within(from, to, hints, 0, at) && within(from, to, hints, 1, at) && within(from, to, hints, 2, at);
  });
}

// Does one lie on the path that a packet takes in the escape network's order?
bool FailedNodes::on_path(TorusGrid::Packed from, TorusGrid::Packed to, std::uint8_t hints) const {
  TorusGrid::Packed here = from;
  for (int turn = 0; turn < (order_ == EscapeOrder::dimension ? 3 : 6); ++turn) {
    const int dim = turn % 3;
    const auto leg = order_ == EscapeOrder::dimension ? hint_of(hints, dim)
                                                      : static_cast<std::uint8_t>(hints & (1u << turn));
    if (leg == 0) continue;
    const std::uint32_t mask = 1023u << (10 * dim);
    const TorusGrid::Packed corner = (here & ~mask) | (to & mask);
    if (on_box(here, corner, leg)) return true;
    here = corner;
  }
  return false;
}

bool FailedNodes::direct(Node from, Node to, std::uint32_t coin, Way* out) const {
  const TorusGrid::Packed a = grid_.coordinates(from), b = grid_.coordinates(to);
  const std::uint8_t shortest = grid_.hints(a, b, coin);
  std::uint32_t best[2] = {~0u, ~0u};  // hops: in any order, in one
  std::uint8_t hints[2] = {};
  for (unsigned turned = 0; turned < 8; ++turned) {
    // The dimensions of `turned` are gone through the other way round.
    std::uint8_t tried = 0;
    std::uint32_t hops = 0;
    bool other = true;
    for (int d = 0; d < 3; ++d) {
      std::uint8_t hint = hint_of(shortest, d);
      if (turned >> d & 1) {
        other = other && hint != 0;
        hint = static_cast<std::uint8_t>(hint < 8 ? hint << 3 : hint >> 3);
      }
      tried = static_cast<std::uint8_t>(tried | hint);
      const std::uint32_t n = grid_.side(d), up = (TorusGrid::at(b, d) + n - TorusGrid::at(a, d)) % n;
      hops += hint == 0 ? 0 : hint < 8 ? up : n - up;
    }
    if (!other) continue;
    for (const bool fixed : {false, true}) {
      if (hops >= best[fixed] || (fixed_ && !fixed)) continue;
      if (fixed ? on_path(a, b, tried) : on_box(a, b, tried)) continue;
      best[fixed] = hops;
      hints[fixed] = tried;
    }
  }
  const bool fixed = best[0] == ~0u;
  if (best[fixed] == ~0u) return false;
  *out = {to, hints[fixed], fixed};
  return true;
}

FailedNodes::Way FailedNodes::way(Node from, Node to, std::uint32_t coin) const {
  Way first, rest;
  if (direct(from, to, coin, &first)) return first;
  // A node on a line with the source, the nearest first; if none does, any.
  const TorusGrid::Packed at = grid_.coordinates(from);
  Node by[6];
  TorusGrid::Packed by_at[6];
  for (int d = 0; d < 6; ++d) by[d] = from, by_at[d] = at;
  const std::uint32_t longest = *std::max_element(grid_.sides().begin(), grid_.sides().end());
  const auto serves = [&](Node node) {
    return node != from && node != to && !failed(node) && direct(from, node, coin, &first) &&
           direct(node, to, coin, &rest);
  };
  for (std::uint32_t far = 1; far < longest; ++far)
    for (int d = 0; d < 6; ++d) {
      by[d] = grid_.step(by[d], by_at[d], d);
      by_at[d] = grid_.step_packed(by_at[d], d);
      if (serves(by[d])) return first;
    }
  for (Node node = 0; node < grid_.nodes(); ++node)
    if (serves(node)) return first;
  return {to, 0, false};  // none: make() lets no such nodes fail (tests hold that)
}

// By node.
static std::vector<bool> failed_of(const FailedNodes& failed, Node nodes) {
  std::vector<bool> out(nodes);
  for (const Node node : failed.nodes()) out[node] = true;
  return out;
}

AroundFailedNodes::AroundFailedNodes(std::unique_ptr<Workload> inner, const FailedNodes& failed, Node nodes,
                                     bool redraw)
    : WithoutNodes(std::move(inner), failed_of(failed, nodes), redraw), failed_(failed), relayed_(nodes) {}

Next AroundFailedNodes::lead(Node node, Random& random, Send& out) const {
  const FailedNodes::Way way = failed_.way(node, out.dst, static_cast<std::uint32_t>(random.next() >> 60));
  out.hints = way.hints;
  if (way.fixed) out.flags |= kDeterministic;
  if (way.via != out.dst) {
    out.flags |= kRelayed;
    out.tag = out.dst;
    out.dst = way.via;
  }
  return Next::send;
}

Next AroundFailedNodes::next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) {
  std::vector<Relayed>& waiting = relayed_[node];
  if (!waiting.empty()) {
    out = {};
    out.dst = waiting.back().to;
    out.payload = waiting.back().payload;
    out.created = waiting.back().created;
    waiting.pop_back();
    return lead(node, random, out);
  }
  const Next next = WithoutNodes::next(node, fifo, now, random, out);
  return next == Next::send ? lead(node, random, out) : next;
}

bool AroundFailedNodes::delivered(Node node, const Packet& packet, Tick now, bool copy) {
  if (!(packet.flags & kRelayed)) return WithoutNodes::delivered(node, packet, now, copy);
  const Relayed relayed{packet.created, packet.tag, packet.payload};
  std::vector<Relayed>& waiting = relayed_[node];
  waiting.insert(std::lower_bound(waiting.begin(), waiting.end(), relayed, std::greater<>()), relayed);
  return true;
}

Refusal lead_round_failed_nodes(const RunSpec& spec, const BglConfig& config,
                                std::unique_ptr<Workload>* workload, BglExtras* extras) {
  if (spec.failed_nodes.empty()) return {};
  FailedNodes failed;
  if (Refusal no = FailedNodes::parse(spec.failed_nodes, config, &failed); no.refused()) return no;
  extras->failed_links = failed.links();
  const Node nodes = config.sides[0] * config.sides[1] * config.sides[2];
  *workload =
      std::make_unique<AroundFailedNodes>(std::move(*workload), failed, nodes, WithoutNodes::redraws(spec));
  return {};
}

}  // namespace orrery::sim
