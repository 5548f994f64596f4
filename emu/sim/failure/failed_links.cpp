// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/failure/failed_links.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace orrery::sim {

namespace {

constexpr std::uint64_t kStream = 0x6661696c;  // of the seed's

Refusal too_many(std::uint32_t count, std::size_t links) {
  return {fmt::format("{} failed links: expected at most {}, a quarter of those that have others beside them",
                      count, links / 4)};
}

}  // namespace

Refusal pick_failed_links(const model::Torus& torus, std::uint32_t count, std::uint64_t seed,
                          std::vector<FailedLink>* out) {
  out->clear();
  if (count == 0) return {};
  std::uint32_t pairs = 0;
  for (model::LinkId link = 0; link < torus.link_slots(); ++link) {
    if (!torus.has_link(link)) continue;
    ++pairs;
    if (torus.parallel(torus.direction_of(link)) < 2)
      return {
          fmt::format("{} failed links: expected 0, a direction of this machine has no second link", count)};
  }
  pairs /= 2;
  if (count > pairs / 4) return too_many(count, pairs);
  Random random(seed, kStream);
  std::vector<bool> gone(torus.link_slots());
  while (out->size() < count) {
    const model::LinkId link = random.below(torus.link_slots());
    if (!torus.has_link(link) || gone[link]) continue;
    const model::Direction d = torus.direction_of(link);
    const model::RouterId router = link / torus.links_per_router();
    std::uint32_t left = 0;
    for (std::uint32_t k = 0; k < torus.parallel(d); ++k) left += !gone[torus.link(router, d, k)];
    if (left < 2) continue;
    gone[link] = true;
    gone[torus.link(torus.neighbour(router, d), model::opposite(d), torus.parallel_index(link))] = true;
    out->push_back({router, link % torus.links_per_router()});
  }
  return {};
}

Refusal pick_failed_links(const model::Dragonfly& dragonfly, std::uint32_t count, std::uint64_t seed,
                          std::vector<FailedLink>* out) {
  using model::LinkColour;
  out->clear();
  if (count == 0) return {};
  const auto group = [](Node router) { return router / model::Dragonfly::kRoutersPerGroup; };
  // Black links lie beside each other between two routers, blue ones between two groups, which have no number
  // that a router has too.
  const auto bundle = [&](const model::LinkEnds& ends, LinkColour colour) {
    return colour == LinkColour::black
               ? std::pair(ends.from, ends.to)
               : std::pair(dragonfly.routers() + group(ends.from), dragonfly.routers() + group(ends.to));
  };
  std::vector<model::LinkId> links;  // one way of each
  std::map<std::pair<Node, Node>, std::uint32_t> left;
  for (model::LinkId link = 0; link < dragonfly.link_slots(); ++link) {
    if (!dragonfly.has_link(link) || dragonfly.colour(link) == LinkColour::green) continue;
    const model::LinkEnds ends = dragonfly.ends(link);
    if (ends.from > ends.to) continue;
    links.push_back(link);
    ++left[bundle(ends, dragonfly.colour(link))];
  }
  if (count > links.size() / 4) return too_many(count, links.size());
  Random random(seed, kStream);
  while (out->size() < count) {
    const std::uint32_t at = random.below(static_cast<std::uint32_t>(links.size()));
    const model::LinkId link = links[at];
    std::uint32_t& beside = left[bundle(dragonfly.ends(link), dragonfly.colour(link))];
    if (beside < 2) continue;
    --beside;
    links[at] = links.back();
    links.pop_back();
    out->push_back({link / model::Dragonfly::kPorts, link % model::Dragonfly::kPorts});
  }
  return {};
}

namespace {

constexpr std::uint64_t kSeveredStream = 0x736576;

// `count` of `units`, in the order drawn; empty if they are too many.
template <typename Unit>
Refusal draw(std::vector<Unit> units, std::uint32_t count, std::uint64_t seed, std::vector<Unit>* out) {
  if (count > units.size() / 4)
    return {fmt::format("{} pairs of neighbours severed: expected at most {}, a quarter of them", count,
                        units.size() / 4)};
  Random random(seed, kSeveredStream);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t at = random.below(static_cast<std::uint32_t>(units.size()));
    out->push_back(units[at]);
    units[at] = units.back();
    units.pop_back();
  }
  return {};
}

void sever(const model::Torus& torus, Node router, model::Direction d, std::vector<FailedLink>* out) {
  const model::LinkId first = torus.link(router, d);
  if (!torus.has_link(first)) return;
  for (std::uint32_t k = 0; k < torus.parallel(d); ++k)
    out->push_back({router, (first + k) % torus.links_per_router()});
}

}  // namespace

Refusal pick_severed(const model::Torus& torus, std::uint32_t count, std::uint64_t seed,
                     std::vector<FailedLink>* out) {
  using Neighbours = std::pair<Node, model::Direction>;
  std::vector<Neighbours> all, drawn;
  for (Node router = 0; router < torus.routers(); ++router)
    for (const auto d : {model::Direction::x_plus, model::Direction::y_plus, model::Direction::z_plus})
      if (torus.has_link(torus.link(router, d))) all.push_back({router, d});
  if (Refusal no = draw(std::move(all), count, seed, &drawn); no.refused()) return no;
  for (const auto& [router, d] : drawn) sever(torus, router, d, out);
  return {};
}

Refusal pick_severed(const model::Dragonfly& dragonfly, std::uint32_t count, std::uint64_t seed,
                     std::vector<FailedLink>* out) {
  std::vector<model::LinkId> all, drawn;
  for (model::LinkId link = 0; link < dragonfly.link_slots(); ++link)
    if (dragonfly.has_link(link) && dragonfly.colour(link) == model::LinkColour::green)
      if (const model::LinkEnds ends = dragonfly.ends(link); ends.from < ends.to) all.push_back(link);
  if (Refusal no = draw(std::move(all), count, seed, &drawn); no.refused()) return no;
  for (const model::LinkId link : drawn)
    out->push_back({link / model::Dragonfly::kPorts, link % model::Dragonfly::kPorts});
  return {};
}

void sever_router(const model::Torus& torus, Node router, std::vector<FailedLink>* out) {
  for (int d = 0; d < model::kDirections; ++d) sever(torus, router, static_cast<model::Direction>(d), out);
}

void sever_router(const model::Dragonfly& dragonfly, Node router, std::vector<FailedLink>* out) {
  for (std::uint32_t port = 0; port < model::Dragonfly::kPorts; ++port)
    if (dragonfly.has_link(router * model::Dragonfly::kPorts + port)) out->push_back({router, port});
}

Refusal fail_links(Quadrics* net, std::uint32_t count, std::uint64_t seed) {
  const model::FatTree& tree = net->tree();
  std::vector<model::LinkId> up;
  for (model::LinkId link = tree.up_link(0, 0) + tree.nodes(); tree.is_up(link); ++link) up.push_back(link);
  if (count > up.size() / 4)
    return {fmt::format("{} failed links: expected at most {}, a quarter of those above the nodes' own",
                        count, up.size() / 4)};
  Random random(seed, kStream);
  for (std::uint32_t lost = 0; lost < count;) {
    if (up.empty())
      return {fmt::format("{} failed links: after {} every other one cuts off some node", count, lost)};
    const std::uint32_t at = random.below(static_cast<std::uint32_t>(up.size()));
    lost += net->fail_both_ways(up[at]).refused() ? 0 : 1;
    up[at] = up.back();
    up.pop_back();
  }
  return {};
}

}  // namespace orrery::sim
