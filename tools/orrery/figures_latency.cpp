// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Latency of a put of 8 B by the hops of its way, over a whole machine at rest (docs/timing.md).
#include "emu/model/machine.hpp"
#include "emu/model/machine_file.hpp"
#include "emu/model/quote.hpp"
#include "tools/orrery/figures_book.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <vector>

namespace orrery::tool {

namespace {

struct RouteMode {
  const char* label;
  model::Routing routing;
};

struct HopMean {
  double sum = 0;
  int count = 0;
};

// The machine with another size, a torus's in nodes.
model::BuiltMachine machine_of_size(const char* name,
                                    const std::vector<std::pair<const char*, std::int64_t>>& sizes) {
  model::MachineFile file = model::load_machine(name);
  if (!file.description) return {nullptr, file.error};
  for (const char* key : {"class", "cabinets", "rows"})
    if (!sizes.empty()) file.description->constants.erase(std::string("topology.") + key);
  for (const auto& [key, value] : sizes) {
    model::Constant& c = file.description->constants[std::string("topology.") + key];
    c.kind = model::ConstantKind::count;
    c.value = value;
    c.source = "this figure";
  }
  return model::compile(*file.description);
}

// From some nodes to all others: means by hops, one line a mode.
std::vector<Curves::Line> lines_by_hops(const model::Pricing& p, const std::vector<RouteMode>& modes) {
  std::vector<Curves::Line> lines;
  for (const RouteMode& mode : modes) {
    std::map<int, HopMean> means;
    for (const model::NodeId src : {model::NodeId{0}, p.nodes / 3}) {
      for (model::NodeId dst = 0; dst < p.nodes; ++dst) {
        if (dst == src) continue;
        const model::Quote q = model::quote(p,
                                            {.op = model::Op::fma_put,
                                             .routing = mode.routing,
                                             .src = src,
                                             .dst = dst,
                                             .bytes = 8,
                                             .seed = std::uint64_t{src} << 32 | dst},
                                            nullptr);
        HopMean& mean = means[q.hops];
        mean.sum += q.data_at.micros();
        ++mean.count;
      }
    }
    lines.push_back({mode.label, {}});
    for (const auto& [hops, mean] : means) lines.back().points.emplace_back(hops, mean.sum / mean.count);
  }
  return lines;
}

double latency_at(const Curves::Line& line, double hops) {
  for (const auto& [x, y] : line.points)
    if (x == hops) return y;
  return std::nan("");
}

}  // namespace

void latency_by_hops(Book& book) {
  const model::BuiltMachine gemini = machine_of_size("gemini", {{"x", 25}, {"y", 32}, {"z", 24}});
  const model::BuiltMachine aries = machine_of_size("aries", {{"groups", 241}});
  if (!gemini.machine || !aries.machine) {
    book.order("latency by hops: the machines", "build", gemini.error + aries.error, false);
    return;
  }
  Curves torus{
      "put-latency-gemini",
      fmt::format("Gemini, 25 x 32 x 24 ({} nodes): put of 8 B at rest", gemini.machine->pricing.nodes),
      "router-to-router hops", "latency, us"};
  torus.lines = lines_by_hops(gemini.machine->pricing, {{"minimal, in order", model::Routing::in_order}});
  torus.marks = {{"1.0 us end-point latency", 1.0}};
  book.curves(torus);
  Curves groups{"put-latency-aries",
                fmt::format("Aries, {} groups ({} nodes): put of 8 B at rest",
                            aries.machine->pricing.dragonfly.groups(), aries.machine->pricing.nodes),
                "router-to-router hops", "latency, us"};
  groups.lines =
      lines_by_hops(aries.machine->pricing, {{"minimal, in order", model::Routing::in_order},
                                             {"through a hashed root", model::Routing::hashed_non_minimal}});
  groups.marks = {{"0.8 us, one hop", 0.8}};
  book.curves(groups);

  const auto& g = torus.lines[0];
  const auto& a = groups.lines[0];
  book.relative("Gemini: latency of a hop, over the whole torus", 105,
                (g.points.back().second - latency_at(g, 1)) / (g.points.back().first - 1) * 1e3, 3, "ns");
  book.relative("Gemini: end-point latency of a put", 1.0, latency_at(g, 1) - 0.105, 3, "us", "fitted");
  book.relative("Aries: put of 8 B, one hop", 0.8, latency_at(a, 1), 3, "us", "fitted");
  book.relative("Aries: the network's part of the longest minimal way", 500,
                (latency_at(a, 5) - latency_at(a, 1)) / 4 * 5 * 1e3, 3, "ns");
  book.order("Aries: the longest minimal way has five hops", "5",
             fmt::format("{:.0f}", a.points.back().first), a.points.back().first == 5);
  book.order("Aries: the longest through a root has ten", "10",
             fmt::format("{:.0f}", groups.lines[1].points.back().first),
             groups.lines[1].points.back().first == 10);
}

}  // namespace orrery::tool
