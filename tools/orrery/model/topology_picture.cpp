// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/model/topology_picture.hpp"

#include <algorithm>
#include <cmath>

namespace orrery::tool {

using model::Network;
using model::RouterId;

namespace {

// More lines than this make a page slow and grey.
constexpr std::size_t kMostLines = 12000;

}  // namespace

Point place(const model::Pricing& p, RouterId r) {
  switch (p.network) {
    case Network::dragonfly: {
      const std::uint32_t groups = p.dragonfly.groups(), group = p.dragonfly.group_of_router(r);
      const double turn = 2 * M_PI * group / groups - M_PI / 2,
                   radius = groups == 1 ? 0 : std::max(180.0, 34.0 * groups);
      const std::uint32_t slot = r % model::Dragonfly::kSlots,
                          chassis = r / model::Dragonfly::kSlots % model::Dragonfly::kChassis;
      return {radius * std::cos(turn) + 9.0 * slot - 68, radius * std::sin(turn) + 9.0 * chassis - 22};
    }
    case Network::fat_tree: {
      const std::uint32_t across = p.tree.switches_per_level();
      const double width = std::max(900.0, 4.0 * across);
      if (r >= p.tree.switches()) {
        return {width * (r - p.tree.switches() + 0.5) / p.nodes, 90.0 * p.tree.levels()};
      }
      return {width * (r % across + 0.5) / across, 90.0 * (p.tree.levels() - 1 - r / across)};
    }
    case Network::crossbar: {
      const auto side = static_cast<std::uint32_t>(std::ceil(std::sqrt(p.nodes)));
      return {12.0 * (r % side), 12.0 * (r / side)};
    }
    default: {
      // x to the right, z up, y towards the reader.
      const auto c = p.torus.router_coordinates(r).at;
      return {34.0 * c[0] + 11.0 * c[1], -26.0 * c[2] + 9.0 * c[1]};
    }
  }
}

std::uint32_t vertices(const model::Pricing& p) {
  switch (p.network) {
    case Network::dragonfly:
      return p.dragonfly.routers();
    case Network::fat_tree:
      return p.tree.switches() + p.nodes;
    case Network::crossbar:
      return p.nodes;
    default:
      return p.torus.routers();
  }
}

// What the machine is wired like, in lines: group bundles, tree links, torus neighbours without the long
// ones that close a ring.
std::vector<std::pair<Point, Point>> wires(const model::Pricing& p) {
  std::vector<std::pair<Point, Point>> out;
  if (p.network == Network::dragonfly) {
    const std::uint32_t groups = p.dragonfly.groups();
    if (groups * groups / 2 > kMostLines) return out;
    for (std::uint32_t a = 0; a < groups; ++a) {
      for (std::uint32_t b = a + 1; b < groups; ++b) {
        out.emplace_back(place(p, a * model::Dragonfly::kRoutersPerGroup + 40),
                         place(p, b * model::Dragonfly::kRoutersPerGroup + 40));
      }
    }
  } else if (p.network == Network::fat_tree) {
    if (p.tree.link_slots() / 2 > kMostLines) return out;
    for (model::LinkId link = 0; link < p.tree.link_slots() / 2; ++link) {
      out.emplace_back(place(p, p.tree.ends(link).from), place(p, p.tree.ends(link).to));
    }
  } else if (p.network != Network::crossbar && p.torus.routers() * 3 <= kMostLines) {
    for (RouterId r = 0; r < p.torus.routers(); ++r) {
      for (int i = 0; i < 3; ++i) {
        const RouterId next = p.torus.neighbour(r, model::direction(i, false));
        if (p.torus.router_coordinates(next).at[static_cast<std::size_t>(i)] > 0)
          out.emplace_back(place(p, r), place(p, next));
      }
    }
  }
  return out;
}

model::LinkEnds ends_of(const model::Pricing& p, model::LinkId link) {
  switch (p.network) {
    case Network::dragonfly:
      return p.dragonfly.ends(link);
    case Network::fat_tree:
      return p.tree.ends(link);
    default:
      return p.torus.ends(link);
  }
}

nlohmann::json rounded(Point at) { return {std::round(at.x * 10) / 10, std::round(at.y * 10) / 10}; }

std::string html_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

void fill_in(std::string* page, std::string_view mark, const std::string& text) {
  for (auto at = page->find(mark); at != std::string::npos; at = page->find(mark, at + text.size())) {
    page->replace(at, mark.size(), text);
  }
}

std::string script_data(const nlohmann::json& data) {
  std::string json = data.dump();
  for (auto at = json.find("</"); at != std::string::npos; at = json.find("</", at + 3))
    json.replace(at, 2, "<\\/");
  return json;
}

}  // namespace orrery::tool
