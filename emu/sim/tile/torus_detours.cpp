// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/tile/torus_detours.hpp"

#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace orrery::sim {

namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;

// A torus by directions of routers, of which some are lost.
class Map {
 public:
  Map(const model::Torus& torus, std::span<const FailedLink> lost, std::span<const Node> dead)
      : grid_(torus.grid()), there_(std::size_t{torus.routers()} * 6), dead_(torus.routers()) {
    std::vector<bool> gone(torus.link_slots());
    for (const FailedLink& failed : lost) {
      const model::LinkId link = failed.router * torus.links_per_router() + failed.port;
      const model::Direction d = torus.direction_of(link);
      gone[link] = true;
      gone[torus.link(torus.neighbour(failed.router, d), model::opposite(d), torus.parallel_index(link))] =
          true;
    }
    for (Node router = 0; router < torus.routers(); ++router)
      for (int d = 0; d < 6; ++d) {
        const auto direction = static_cast<model::Direction>(d);
        if (!torus.has_link(torus.link(router, direction))) continue;
        for (std::uint32_t k = 0; k < torus.parallel(direction); ++k)
          if (!gone[torus.link(router, direction, k)]) there_[router * 6u + static_cast<unsigned>(d)] = true;
        if (!leads(router, d)) lost_.push_back({router, d});
      }
    for (const Node router : dead) dead_[router] = true;
    for (int dim = 0; dim < 3; ++dim)
      open_[static_cast<std::size_t>(dim)] = !torus.shape().closed[static_cast<std::size_t>(dim)];
  }

  const TorusGrid& grid() const { return grid_; }
  const std::vector<std::pair<Node, int>>& lost() const { return lost_; }
  bool dead(Node router) const { return dead_[router]; }
  bool leads(Node router, int d) const { return there_[router * 6u + static_cast<unsigned>(d)]; }
  bool open(int dim) const { return open_[static_cast<std::size_t>(dim)]; }
  std::uint32_t side(int dim) const { return grid_.side(dim); }

  std::string name(Node router) const {
    const TorusGrid::Packed c = grid_.coordinates(router);
    return fmt::format("{}.{}.{}", TorusGrid::at(c, 0), TorusGrid::at(c, 1), TorusGrid::at(c, 2));
  }

  // Two routers, neither dead, without any way between them.
  std::optional<std::pair<Node, Node>> cut() const {
    std::vector<bool> seen(dead_);
    std::vector<Node> reached;
    Node first = 0;
    while (first < grid_.nodes() && dead_[first]) ++first;
    if (first == grid_.nodes()) return {};
    seen[first] = true;
    reached.push_back(first);
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (int d = 0; d < 6; ++d) {
        if (!leads(reached[i], d)) continue;
        const Node next = grid_.step(reached[i], grid_.coordinates(reached[i]), d);
        if (seen[next]) continue;
        seen[next] = true;
        reached.push_back(next);
      }
    for (Node router = 0; router < grid_.nodes(); ++router)
      if (!seen[router]) return std::pair(first, router);
    return {};
  }

  // Whether a shortest way from coordinate a to b of a dimension may go that way; both may at half way round.
  bool usual(int dim, bool minus, std::uint32_t a, std::uint32_t b) const {
    if (a == b) return false;
    if (open(dim)) return minus == (b < a);
    const std::uint32_t n = side(dim), up = (b + n - a) % n;
    return minus ? 2 * up >= n : 2 * up <= n;
  }

 private:
  TorusGrid grid_;
  std::vector<bool> there_, dead_;
  std::vector<std::pair<Node, int>> lost_;
  std::array<bool, 3> open_{};
};

// The coordinates of sources and destinations in one dimension whose usual way may lead over direction `d` of
// a router at `c`.
std::vector<Pair> broken_in(const Map& map, int dim, int d, std::uint32_t c) {
  std::vector<Pair> out;
  const std::uint32_t n = map.side(dim);
  for (std::uint32_t a = 0; a < n; ++a)
    for (std::uint32_t b = 0; b < n; ++b) {
      bool crosses = false;
      if (dim == dim_of(d)) {
        const bool minus = minus_of(d);
        const auto steps = [&](std::uint32_t to) { return minus ? (a + n - to) % n : (to + n - a) % n; };
        crosses = map.usual(dim, minus, a, b) && steps(c) < steps(b);
      } else {
        // Earlier directions are done there, later ones not begun.
        crosses = a == b && a == c;
        for (const bool minus : {false, true})
          if (map.usual(dim, minus, a, b)) crosses = crosses || (dim + (minus ? 3 : 0) < d ? b : a) == c;
      }
      if (crosses) out.push_back({a, b});
    }
  return out;
}

// Steps in the + and then in the - direction of a dimension.
struct Steps {
  std::uint32_t plus, minus;
  std::uint32_t length() const { return plus + minus; }
};

// All that lead from coordinate a to b, shortest first.
std::vector<Steps> steps_between(const Map& map, int dim, std::uint32_t a, std::uint32_t b) {
  std::vector<Steps> out;
  const std::uint32_t n = map.side(dim);
  for (std::uint32_t plus = 0; plus < n; ++plus) {
    if (map.open(dim) && (a + plus >= n || a + plus < b)) continue;
    out.push_back({plus, (a + plus + n - b) % n});
  }
  std::stable_sort(out.begin(), out.end(), [](Steps x, Steps y) { return x.length() < y.length(); });
  return out;
}

bool passes(const Map& map, Node from, const std::array<Steps, 3>& steps) {
  Node at = from;
  TorusGrid::Packed c = map.grid().coordinates(from);
  for (int d = 0; d < 6; ++d) {
    const Steps& s = steps[static_cast<std::size_t>(dim_of(d))];
    for (std::uint32_t i = minus_of(d) ? s.minus : s.plus; i > 0; --i) {
      if (!map.leads(at, d)) return false;
      at = map.grid().step(at, c, d);
      c = map.grid().step_packed(c, d);
    }
  }
  return true;
}

// The shortest way in the routers' order; of equally short ones each pair draws its own.
std::optional<std::array<Steps, 3>> way_between(const Map& map, Node from, Node to) {
  const TorusGrid::Packed a = map.grid().coordinates(from), b = map.grid().coordinates(to);
  std::array<std::vector<Steps>, 3> all;
  for (int d = 0; d < 3; ++d)
    all[static_cast<std::size_t>(d)] = steps_between(map, d, TorusGrid::at(a, d), TorusGrid::at(b, d));
  std::optional<std::array<Steps, 3>> best;
  std::uint32_t length = ~0u, equal = 0;
  Random random(from, to);
  for (const Steps& x : all[0]) {
    if (x.length() + all[1][0].length() + all[2][0].length() > length) break;
    for (const Steps& y : all[1]) {
      if (x.length() + y.length() + all[2][0].length() > length) break;
      for (const Steps& z : all[2]) {
        const std::uint32_t sum = x.length() + y.length() + z.length();
        if (sum > length) break;
        if (!passes(map, from, {x, y, z})) continue;
        if (sum < length) equal = 0;
        length = sum;
        if (random.below(++equal) == 0) best = {x, y, z};
      }
    }
  }
  return best;
}

// Pairs of routers, neither dead, whose usual way may be lost.
std::vector<std::pair<Node, Node>> broken_pairs(const Map& map) {
  std::vector<std::pair<Node, Node>> pairs;
  const TorusGrid& grid = map.grid();
  for (const auto& [router, d] : map.lost()) {
    std::array<std::vector<Pair>, 3> by;
    for (int dim = 0; dim < 3; ++dim)
      by[static_cast<std::size_t>(dim)] =
          broken_in(map, dim, d, TorusGrid::at(grid.coordinates(router), dim));
    for (const Pair& x : by[0])
      for (const Pair& y : by[1])
        for (const Pair& z : by[2]) {
          const Node from = grid.node(TorusGrid::pack(x.first, y.first, z.first));
          const Node to = grid.node(TorusGrid::pack(x.second, y.second, z.second));
          if (!map.dead(from) && !map.dead(to)) pairs.push_back({from, to});
        }
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

}  // namespace

Refusal TorusDetours::make(const model::Torus& torus, std::span<const FailedLink> lost,
                           std::span<const Node> dead, TorusDetours* out) {
  const Map map(torus, lost, dead);
  TorusDetours made;
  if (map.lost().empty()) {
    *out = std::move(made);
    return {};
  }
  if (const auto two = map.cut())
    return {
        fmt::format("lost links cut the network in two, routers {} and {}: expected a way between every two",
                    map.name(two->first), map.name(two->second))};
  made.first_.assign(torus.routers() + 1, 0);
  for (const auto& [from, to] : broken_pairs(map)) {
    const auto steps = way_between(map, from, to);
    if (!steps)
      return {
          fmt::format("lost links leave no way from router {} to {} in the routers' order of directions: "
                      "expected fewer, or others",
                      map.name(from), map.name(to))};
    Way way{to, map.grid().coordinates(to), 0};
    for (int d = 0; d < 3; ++d) {
      const Steps& s = (*steps)[static_cast<std::size_t>(d)];
      if (s.plus != 0) way.hints = static_cast<std::uint8_t>(way.hints | 1u << d);
      if (s.minus == 0) continue;
      way.hints = static_cast<std::uint8_t>(way.hints | 8u << d);
      const std::uint32_t n = map.side(d), at = TorusGrid::at(way.turn, d);
      way.turn = (way.turn & ~(1023u << (10 * d))) | ((at + s.minus) % n) << (10 * d);
    }
    made.ways_.push_back(way);
    ++made.first_[from + 1];
  }
  for (std::size_t i = 1; i < made.first_.size(); ++i) made.first_[i] += made.first_[i - 1];
  *out = std::move(made);
  return {};
}

}  // namespace orrery::sim
