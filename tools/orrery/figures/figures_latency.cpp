// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Latency of a put of 8 B by the hops of its way, over a whole machine at rest (docs/timing.md).
#include "emu/model/machine.hpp"
#include "emu/model/machine_file.hpp"
#include "emu/model/quote.hpp"
#include "tools/orrery/figures/figures_book.hpp"
#include "tools/orrery/figures/figures_measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
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

// A shipped machine's file with another size: `without` are the sizes that it has.
std::string file_of_size(std::string_view name, const std::vector<std::string>& without,
                         const std::vector<std::pair<const char*, std::int64_t>>& sizes) {
  std::string text, all;
  for (const auto& shipped : model::shipped_machines())
    if (shipped.name == name) text = shipped.text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto is_size = [&](const std::string& key) { return line.starts_with(key + " ="); };
    if (std::any_of(without.begin(), without.end(), is_size)) continue;
    all += line + "\n";
    if (line != "[topology]") continue;
    for (const auto& [key, value] : sizes)
      all += fmt::format("{} = {{ value = {}, source = \"this figure\" }}\n", key, value);
  }
  return all;
}

// For each number of hops the first node that is so far from node 0, there and back, whichever minimal way a
// message takes.
std::map<int, model::NodeId> nodes_by_hops(const model::Pricing& p) {
  constexpr std::uint64_t kWays = 16;
  std::map<int, model::NodeId> nodes;
  const auto hops = [&](model::NodeId from, model::NodeId to, std::uint64_t seed) {
    return model::quote(p, {.src = from, .dst = to, .seed = seed}, nullptr).hops;
  };
  for (model::NodeId node = 1; node < p.nodes; ++node) {
    const int there = hops(0, node, 0);
    if (nodes.find(there) != nodes.end()) continue;
    bool same = true;
    for (std::uint64_t way = 0; way < kWays && same; ++way)
      same = hops(0, node, way) == there && hops(node, 0, way) == there;
    if (same) nodes.emplace(there, node);
  }
  return nodes;
}

// What a running program measures, each point against the model's answer for the very nodes that it ran on.
void measure(Book& book, const model::Pricing& p, const std::string& machine_text, Curves* curves) {
  if (book.options().program.empty()) return;
  const std::map<int, model::NodeId> nodes = nodes_by_hops(p);
  const MeasuredPoints found = measure_latency(book.options().program, machine_text, nodes);
  if (!found.problem.empty())
    return book.order(curves->name + ", a running program", "runs", found.problem, false);
  double worst = 0;
  for (const auto& [hops, us] : found.points) {
    const model::NodeId node = nodes.at(static_cast<int>(hops));
    const auto way = [&](model::NodeId from, model::NodeId to) {
      return model::quote(p, {.op = model::Op::fma_put, .src = from, .dst = to, .bytes = 8}, nullptr)
          .data_at.micros();
    };
    worst = std::max(worst, std::fabs(us - (way(0, node) + way(node, 0)) / 2) * 1e3);
  }
  // It prints hundredths of a microsecond.
  book.order(fmt::format("{}: a running program measures what the model says, {} points", curves->name,
                         found.points.size()),
             "within 5 ns", fmt::format("{:.2f} ns", worst), worst <= 5.01);
  curves->measured = {{"a running program", found.points}};
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
  torus.marks = {{"1.0 us end-point latency or less", 1.0}};
  measure(book, gemini.machine->pricing,
          file_of_size("gemini", {"class", "cabinets", "rows"}, {{"x", 25}, {"y", 32}, {"z", 24}}), &torus);
  book.curves(torus);
  Curves groups{"put-latency-aries",
                fmt::format("Aries, {} groups ({} nodes): put of 8 B at rest",
                            aries.machine->pricing.dragonfly.groups(), aries.machine->pricing.nodes),
                "router-to-router hops", "latency, us"};
  groups.lines =
      lines_by_hops(aries.machine->pricing, {{"minimal, in order", model::Routing::in_order},
                                             {"through a hashed root", model::Routing::hashed_non_minimal}});
  groups.marks = {{"0.8 us, in a blade", 0.8}};
  measure(book, aries.machine->pricing, file_of_size("aries", {"groups"}, {{"groups", 241}}), &groups);
  book.curves(groups);

  const auto& g = torus.lines[0];
  const auto& a = groups.lines[0];
  book.relative("Gemini: latency of a hop, over the whole torus", 105,
                (g.points.back().second - latency_at(g, 1)) / (g.points.back().first - 1) * 1e3, 3, "ns");
  book.order("Gemini: end-point latency of a put", "1.0 us or less",
             fmt::format("{:.2f} us", latency_at(g, 1) - 0.105), latency_at(g, 1) - 0.105 <= 1.0);
  // One hop is to the next router of the group: some of the curve's are by fibre. The paper counts routers;
  // the fibre of the longest way comes on top.
  const double near =
      model::quote(aries.machine->pricing,
                   {.op = model::Op::fma_put, .dst = model::Dragonfly::kNics, .bytes = 8}, nullptr)
          .data_at.micros();
  const double fibre = aries.machine->pricing.global_cable.micros();
  book.relative("Aries: put of 8 B, two nodes of a blade", 0.8, latency_at(a, 0), 3, "us", "fitted");
  book.relative("Aries: the routers' part of the longest minimal way", 500,
                (latency_at(a, 5) - fibre - near) / 4 * 5 * 1e3, 3, "ns");
  book.order("Aries: the longest minimal way has five hops", "5",
             fmt::format("{:.0f}", a.points.back().first), a.points.back().first == 5);
  book.order("Aries: the longest through a root has ten", "10",
             fmt::format("{:.0f}", groups.lines[1].points.back().first),
             groups.lines[1].points.back().first == 10);
}

}  // namespace orrery::tool
