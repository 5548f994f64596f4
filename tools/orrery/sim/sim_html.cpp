// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/sim/sim_html.hpp"

#include "emu/model/dragonfly.hpp"
#include "emu/sim/scene/report.hpp"
#include "emu/sim/scene/simulate.hpp"
#include "tools/orrery/figures/figures_curve.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include <fmt/format.h>

namespace orrery::tool {

namespace {

constexpr std::size_t kRows = 512;           // of a heat map
constexpr std::size_t kMostSites = 100'000;  // routers of a picture

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

Curves over_time(const sim::SimResult& r, bool flying) {
  Curves curves;
  curves.title = flying ? "packets in flight" : "delivered, GB/s a node";
  curves.x_label = "us";
  curves.y_label = curves.title;
  curves.lines.push_back({r.workload, {}});
  sim::Counters before;
  sim::Tick since = 0;
  for (const sim::Sample& s : r.outcome.samples) {
    const double ns = static_cast<double>(s.at - since) * r.tick_ns;
    const double rate = static_cast<double>(s.totals.delivered_bytes - before.delivered_bytes) / ns / r.nodes;
    curves.lines[0].points.push_back(
        {static_cast<double>(s.at) * r.tick_ns / 1000, flying ? static_cast<double>(s.buffered) : rate});
    before = s.totals;
    since = s.at;
  }
  return curves;
}

// Of the buffers of each virtual channel: the share that is taken, or that of the fullest one.
Curves occupancy(const sim::SimResult& r, bool fullest) {
  Curves curves;
  curves.title = fullest ? "fullest buffer of each virtual channel, % taken"
                         : "buffers of each virtual channel, % taken";
  curves.x_label = "us";
  curves.y_label = "% taken";
  for (const std::string& name : r.vc_names) curves.lines.push_back({escaped(name), {}});
  for (const sim::Sample& s : r.outcome.samples)
    for (std::size_t v = 0; v < curves.lines.size() && v < s.vcs.size(); ++v)
      curves.lines[v].points.push_back({static_cast<double>(s.at) * r.tick_ns / 1000,
                                        100 * (fullest ? s.vcs[v].fullest : s.vcs[v].mean())});
  return curves;
}

// Share of its time that a link was occupied, 0 to 1, as a colour from dark blue over green to red.
std::string colour(double share) {
  return fmt::format("hsl({:.0f},85%,{:.0f}%)", 240 * (1 - std::clamp(share, 0.0, 1.0)), 25 + 30 * share);
}

// How the routers of a network lie beside each other: blocks of rows of columns, in the order of their
// numbers.
struct Layout {
  std::size_t columns = 0, rows = 0, blocks = 0;
  std::string words;
};

// A torus: a block a plane of z. A dragonfly: a block a group, its chassis as rows, their slots as columns.
// Nothing for other networks.
Layout layout_of(const std::string& shape, std::size_t sites) {
  constexpr std::size_t kChassis = model::Dragonfly::kChassis, kSlots = model::Dragonfly::kSlots;
  std::array<std::uint32_t, 3> sides{};
  if (shape.find('x') != std::string::npos && sim::parse_shape(shape, &sides)) {
    for (const std::size_t a_router : {1, 2}) {  // nodes, neighbours in y
      const std::size_t rows = sides[1] / a_router;
      if (sides[0] * rows * sides[2] == sites)
        return {sides[0], rows, sides[2], "a block is a plane of z, x to the right, y downwards"};
    }
  }
  if (shape.find("group") != std::string::npos && sites % kSlots == 0)
    return {kSlots, kChassis, (sites + kSlots * kChassis - 1) / (kSlots * kChassis),
            "a block is a group, a row a chassis, a column a slot"};
  return {};
}

// Each router by how busy its links were on the average, where the network has it.
std::string picture(const sim::SimResult& r, const std::function<double(std::size_t)>& share) {
  const std::size_t sites = r.link_busy.size() / r.ports;
  const Layout layout = layout_of(r.shape, sites);
  if (layout.blocks == 0 || sites > kMostSites) return {};
  constexpr std::size_t kAcross = 800, kCell = 8, kGap = 6;
  const std::size_t cell = std::clamp<std::size_t>((kAcross - kGap) / layout.columns, 1, kCell);
  const std::size_t block_width = layout.columns * cell + kGap, block_height = layout.rows * cell + kGap;
  const std::size_t a_row = std::max<std::size_t>(1, std::min(layout.blocks, kAcross / block_width));
  const std::size_t width = a_row * block_width, height = (layout.blocks + a_row - 1) / a_row * block_height;
  std::string out = fmt::format(
      "<h3>routers</h3><p>{}; colour: the mean of its links, blue idle, red always busy</p>\n"
      "<svg class=\"heat\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" "
      "shape-rendering=\"crispEdges\">\n",
      layout.words, width, height, width, height);
  const std::size_t a_block = layout.columns * layout.rows;
  for (std::size_t site = 0; site < sites; ++site) {
    double sum = 0;
    std::size_t links = 0;
    for (std::size_t port = 0; port < r.ports; ++port) {
      const double busy = share(site * r.ports + port);
      sum += busy;
      links += busy > 0;
    }
    const std::size_t block = site / a_block, in_block = site % a_block;
    out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
                       block % a_row * block_width + in_block % layout.columns * cell,
                       block / a_row * block_height + in_block / layout.columns * cell, cell, cell,
                       colour(links == 0 ? 0 : sum / static_cast<double>(links)));
  }
  return out + "</svg>\n";
}

std::string heat_map(const sim::SimResult& r) {
  if (r.link_busy.empty() || r.ports == 0 || r.outcome.end == 0) return {};
  const std::size_t sites = r.link_busy.size() / r.ports, each = (sites + kRows - 1) / kRows;
  const std::size_t rows = (sites + each - 1) / each;
  const auto share = [&](std::size_t link) {
    // A packet that is on its link when the run ends was counted with all of its time.
    return std::min(1.0, static_cast<double>(r.link_busy[link]) / static_cast<double>(r.outcome.end));
  };
  std::string out = picture(r, share);
  if (out.empty()) {
    const std::size_t height = rows > 128 ? 2 : 8, width = 16;
    out = fmt::format(
        "<h3>links</h3><p>{} routers down, {} ports across{}; blue idle, red always busy</p>\n"
        "<svg class=\"heat\" width=\"{}\" height=\"{}\" shape-rendering=\"crispEdges\">\n",
        sites, r.ports, each > 1 ? fmt::format(", {} routers a row", each) : "", width * r.ports,
        height * rows);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t port = 0; port < r.ports; ++port) {
        double sum = 0;
        std::size_t count = 0;
        for (std::size_t s = row * each; s < std::min(sites, (row + 1) * each); ++s, ++count)
          sum += share(s * r.ports + port);
        out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", port * width,
                           row * height, width, height, colour(sum / static_cast<double>(count)));
      }
    out += "</svg>\n";
  }
  out += "<table><tr><th>router<th>port<th>busy</tr>\n";
  std::vector<std::uint32_t> order(r.link_busy.size());
  std::iota(order.begin(), order.end(), 0u);
  const std::size_t top = std::min<std::size_t>(10, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top), order.end(),
                    [&](std::uint32_t a, std::uint32_t b) {
                      return r.link_busy[a] != r.link_busy[b] ? r.link_busy[a] > r.link_busy[b] : a < b;
                    });
  for (std::size_t i = 0; i < top; ++i)
    out += fmt::format("<tr><td>{}<td>{}<td>{:.1f} %</tr>\n", order[i] / r.ports, order[i] % r.ports,
                       100 * share(order[i]));
  return out + "</table>\n";
}

std::string channels(const sim::SimResult& r) {
  std::string out = "<h3>virtual channels</h3>\n<table><tr><th>channel<th>share of hops</tr>\n";
  const auto all = static_cast<double>(std::max<std::uint64_t>(1, r.outcome.total.link_hops));
  for (std::size_t v = 0; v < r.vc_names.size() && v < r.outcome.total.vc_hops.size(); ++v)
    out += fmt::format("<tr><td>{}<td>{:.2f} %</tr>\n", escaped(r.vc_names[v]),
                       100 * static_cast<double>(r.outcome.total.vc_hops[v]) / all);
  return out + "</table>\n";
}

}  // namespace

std::string sim_html(const std::vector<sim::SimResult>& results) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>orrery sim</title>\n"
      "<style>body{font:14px "
      "sans-serif;margin:2em;max-width:60em}pre{background:#f4f4f4;padding:1em;white-space:pre-wrap;overflow-"
      "wrap:anywhere}svg.heat{max-width:100%;height:auto}"
      "td,th{padding:0 1em 0 0;text-align:left}</style></head><body>\n<h1>orrery sim</h1>\n";
  if (results.size() > 1) {
    Curves latency, rate;
    latency.title = latency.y_label = "mean latency, us";
    rate.title = rate.y_label = "delivered, packets per node and tick";
    latency.x_label = rate.x_label = "offered, packets per node and tick";
    latency.lines.push_back({results[0].workload, {}});
    rate.lines.push_back({results[0].workload, {}});
    for (const sim::SimResult& r : results) {
      latency.lines[0].points.push_back({r.offered, r.mean_latency_ns() / 1000});
      rate.lines[0].points.push_back({r.offered, r.accepted()});
    }
    out += "<h2>sweep</h2>\n" + curves_svg(latency) + curves_svg(rate);
  }
  for (const sim::SimResult& r : results) {
    out += fmt::format("<h2>{} {}: {}</h2>\n<pre>{}</pre>\n", escaped(r.machine), escaped(r.shape),
                       escaped(r.workload), escaped(sim::to_text(r)));
    if (!r.outcome.samples.empty()) out += curves_svg(over_time(r, false)) + curves_svg(over_time(r, true));
    out += heat_map(r) + channels(r);
    if (!r.outcome.samples.empty() && !r.outcome.samples.front().vcs.empty())
      out += curves_svg(occupancy(r, false)) + curves_svg(occupancy(r, true));
  }
  return out + "</body></html>\n";
}

}  // namespace orrery::tool
