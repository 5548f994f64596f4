// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/reroute.hpp"

#include <algorithm>

namespace orrery::model {

namespace {

// Breadth-first over `vertices`; `out(v, visit)` calls visit(link) for the slots that leave v.
template <typename Topology, typename Out>
Result<Detour> shortest(const Topology& topology, const FailedLinks& failed, std::uint32_t vertices,
                        RouterId from, RouterId to, const Out& out) {
  std::vector<LinkId> came_by(vertices, kNoLink);
  std::vector<bool> seen(vertices, false);
  std::vector<RouterId> frontier{from};
  seen[from] = true;
  for (std::size_t head = 0; head < frontier.size() && !seen[to]; ++head) {
    out(frontier[head], [&](LinkId link) {
      if (!topology.has_link(link) || failed.contains(link)) return;
      const RouterId next = topology.ends(link).to;
      if (seen[next]) return;
      seen[next] = true;
      came_by[next] = link;
      frontier.push_back(next);
    });
  }
  if (!seen[to]) return Errc::unreachable;
  std::vector<LinkId> backwards;
  for (RouterId at = to; at != from; at = topology.ends(came_by[at]).from) backwards.push_back(came_by[at]);
  if (backwards.size() > Route::kCapacity) return Errc::unreachable;
  Detour detour;
  detour.quiesced = true;
  for (auto it = backwards.rbegin(); it != backwards.rend(); ++it) detour.route.push(*it);
  return detour;
}

template <typename Try>
bool own_route(const FailedLinks& failed, std::uint64_t seed, int tries, const Try& attempt, Detour* detour) {
  for (int i = 0; i < tries; ++i) {
    detour->route.clear();
    attempt(i == 0 ? seed : mix64(seed + static_cast<std::uint64_t>(i)), &detour->route);
    if (!failed.touches(detour->route)) return true;
  }
  return false;
}

}  // namespace

bool FailedLinks::touches(const Route& route) const {
  return std::any_of(route.begin(), route.end(), [&](LinkId link) { return contains(link); });
}

Result<Detour> route_around(const Torus& torus, const FailedLinks& failed, NodeId src, NodeId dst,
                            const TorusChoice& choice, int tries) {
  const RouterId from = torus.router_of(src), to = torus.router_of(dst);
  Detour detour;
  const auto attempt = [&](std::uint64_t seed, Route* out) {
    torus.route_routers(from, to, {choice.order, seed}, out);
    // Parallel links of one direction mask each other's loss.
    Route masked;
    for (LinkId link : *out) {
      const LinkId first = link - torus.parallel_index(link);
      const std::uint32_t width = torus.parallel(torus.direction_of(link));
      std::uint32_t k = torus.parallel_index(link);
      for (std::uint32_t i = 0; i < width && failed.contains(first + k); ++i) k = (k + 1) % width;
      masked.push(first + k);
    }
    *out = masked;
  };
  if (own_route(failed, choice.seed, tries, attempt, &detour)) return detour;
  return shortest(torus, failed, torus.routers(), from, to, [&](RouterId router, const auto& visit) {
    for (std::uint32_t port = 0; port < torus.links_per_router(); ++port) {
      visit(router * torus.links_per_router() + port);
    }
  });
}

Result<Detour> route_around(const Dragonfly& dragonfly, const FailedLinks& failed, NodeId src, NodeId dst,
                            std::uint64_t seed, int tries) {
  const RouterId from = dragonfly.router_of(src), to = dragonfly.router_of(dst);
  Detour detour;
  const auto minimal = [&](std::uint64_t s, Route* out) { dragonfly.minimal(from, to, s, out); };
  const auto valiant = [&](std::uint64_t s, Route* out) { dragonfly.valiant(from, to, s, out); };
  if (own_route(failed, seed, tries, minimal, &detour)) return detour;
  if (own_route(failed, seed, tries, valiant, &detour)) return detour;
  return shortest(dragonfly, failed, dragonfly.routers(), from, to, [](RouterId router, const auto& visit) {
    for (std::uint32_t port = 0; port < Dragonfly::kPorts; ++port) visit(router * Dragonfly::kPorts + port);
  });
}

namespace {

// Depth first over the up ports, keeping to up*/down*, which is what keeps the tree free of deadlock.
bool climb(const FatTree& tree, const FailedLinks& failed, NodeId dst, std::uint32_t level,
           std::uint32_t index, std::uint32_t turn_from, const Route& sofar, Route* out) {
  if (level >= turn_from) {
    *out = sofar;
    tree.descend(level, index, dst, out);
    if (!failed.touches(*out)) return true;
  }
  if (level + 1 == tree.levels()) return false;
  for (std::uint32_t port = 0; port < FatTree::kArity; ++port) {
    const LinkId link = tree.up_link(level + 1, index * FatTree::kArity + port);
    if (failed.contains(link)) continue;
    Route longer = sofar;
    longer.push(link);
    if (climb(tree, failed, dst, level + 1, tree.up_from(level, index, port), turn_from, longer, out))
      return true;
  }
  return false;
}

}  // namespace

Result<Detour> route_around(const FatTree& tree, const FailedLinks& failed, NodeId src, NodeId dst,
                            std::uint64_t seed, int tries) {
  Detour detour;
  const auto attempt = [&](std::uint64_t s, Route* out) { tree.route(src, dst, s, out); };
  if (own_route(failed, seed, tries, attempt, &detour)) return detour;
  Route first;
  first.push(tree.up_link(0, src));
  detour.quiesced = true;
  if (failed.touches(first) || src == dst) return Errc::unreachable;
  if (!climb(tree, failed, dst, 0, src / FatTree::kArity, FatTree::nca_level(src, dst), first,
             &detour.route)) {
    return Errc::unreachable;
  }
  return detour;
}

}  // namespace orrery::model
