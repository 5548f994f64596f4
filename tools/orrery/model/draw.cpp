// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/explain.hpp"
#include "emu/model/machine_file.hpp"
#include "tools/orrery/model/topology_picture.hpp"
#include "tools/orrery/subcommand.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>

// A machine and one route as one HTML page with nothing to load: the layout is computed here, a few lines of
// script in the page turn it into SVG.
namespace orrery::tool {

namespace {

using model::Network;
using model::RouterId;

struct DrawOptions {
  std::string machine = "aries", out, operation = "put";
  // What was not given is none, so that no number stands for it.
  std::optional<std::int64_t> groups, cables, levels, dst;
  bool json = false;
  std::vector<std::int64_t> size;
  std::int64_t src = 0;
  std::uint64_t bytes = 8;
};

std::string read_sizes(const DrawOptions& options, model::Description* d) {
  const auto set = [&](const char* key, std::int64_t value) {
    model::Constant& c = d->constants[std::string("topology.") + key];
    c.kind = model::ConstantKind::count;
    c.value = value;
    c.source = "command line";
  };
  const bool dragonfly = d->network == Network::dragonfly, tree = d->network == Network::fat_tree;
  const bool torus = !dragonfly && !tree && d->network != Network::crossbar;
  if ((options.groups || options.cables) && !dragonfly) return "--groups and --cables need a dragonfly";
  if (options.levels && !tree) return "--levels needs a fat tree";
  if (!options.size.empty() && !torus) return "--size needs a torus";
  if (options.groups) {
    if (*options.groups < 1 || *options.groups > 241)
      return fmt::format("--groups {}: expected 1..241", *options.groups);
    set("groups", *options.groups);
  }
  if (options.cables) {
    if (*options.cables < 0 || *options.cables > 240)
      return fmt::format("--cables {}: expected 0..240", *options.cables);
    set("cables", *options.cables);
  }
  if (options.levels) {
    if (*options.levels < 1 || *options.levels > 8)
      return fmt::format("--levels {}: expected 1..8", *options.levels);
    set("levels", *options.levels);
  }
  if (!options.size.empty()) {
    for (const char* key : {"class", "cabinets", "rows"}) d->constants.erase(std::string("topology.") + key);
    constexpr const char* kAxes[] = {"x", "y", "z"};
    for (std::size_t i = 0; i < 3; ++i) {
      if (options.size[i] < 1 || options.size[i] > 4096)
        return fmt::format("--size {}: expected 1..4096", options.size[i]);
      set(kAxes[i], options.size[i]);
    }
  }
  return {};
}

constexpr const char* kPage = R"page(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>%TITLE%</title>
<style>
body{font:14px system-ui,sans-serif;margin:1.5em;color:#222;background:#fff}
svg{width:100%;height:70vh;border:1px solid #ddd}
.router{fill:#8899aa}.wire{stroke:#dde3ea;stroke-width:1}.hop{stroke:#c22;stroke-width:3;stroke-linecap:round}
.end{fill:none;stroke:#c22;stroke-width:3}.blue{stroke:#16c}.green{stroke:#182}.black{stroke:#111}
td,th{padding:.1em .8em .1em 0;text-align:left}td.n{text-align:right}
</style></head><body>
<h1>%TITLE%</h1><p>%SUMMARY%</p>
<svg id="picture" role="img" aria-label="%TITLE%"></svg>
<h2>Route, %HOPS% links</h2><ol>%ROUTE%</ol>
<h2>Cost of %OPERATION%</h2><table><tr><th>time</th><th>what</th><th>source</th></tr>%COSTS%</table>
<script type="application/json" id="data">%DATA%</script>
<script>
const d=JSON.parse(document.getElementById("data").textContent),s=document.getElementById("picture");
const add=(n,a)=>{
const e=document.createElementNS("http://www.w3.org/2000/svg",n);
for(const k in a)e.setAttribute(k,a[k]);s.appendChild(e)};
const xs=d.routers.map(p=>p[0]),ys=d.routers.map(p=>p[1]);
const low=v=>v.reduce((a,b)=>Math.min(a,b)),high=v=>v.reduce((a,b)=>Math.max(a,b));
const m=20,x=low(xs)-m,y=low(ys)-m;
s.setAttribute("viewBox",[x,y,high(xs)-x+m,high(ys)-y+m].join(" "));
for(const [a,b] of d.wires)add("line",{x1:a[0],y1:a[1],x2:b[0],y2:b[1],class:"wire"});
for(const p of d.routers)add("circle",{cx:p[0],cy:p[1],r:2.5,class:"router"});
for(const h of d.route)add("line",{x1:h.from[0],y1:h.from[1],x2:h.to[0],y2:h.to[1],class:"hop "+h.by});
for(const p of d.ends)add("circle",{cx:p[0],cy:p[1],r:7,class:"end"});
document.body.dataset.routers=s.querySelectorAll(".router").length;
document.body.dataset.hops=s.querySelectorAll(".hop").length;
</script></body></html>
)page";

struct Drawing {
  std::string page;
  std::size_t routers = 0, wires = 0;
  model::Explanation explained;
};

Drawing drawing_of(const model::Machine& m, const model::QuoteRequest& request) {
  const auto& p = m.pricing;
  const model::Explanation e = model::explain(m, request);
  const std::uint32_t count = vertices(p);
  nlohmann::json data;
  data["routers"] = nlohmann::json::array();
  for (RouterId r = 0; r < count; ++r) data["routers"].push_back(rounded(place(p, r)));
  data["wires"] = nlohmann::json::array();
  for (const auto& [a, b] : wires(p)) data["wires"].push_back({rounded(a), rounded(b)});
  data["route"] = nlohmann::json::array();
  data["ends"] = nlohmann::json::array();
  std::string route, costs;
  for (const auto& hop : e.route) {
    const auto ends = ends_of(p, hop.link);
    data["route"].push_back({{"from", rounded(place(p, ends.from))},
                             {"to", rounded(place(p, ends.to))},
                             {"by", hop.by.substr(0, hop.by.find(' '))}});
    route += fmt::format("<li>{} \u2014 {} \u2192 {}</li>", html_escaped(hop.from), html_escaped(hop.by),
                         html_escaped(hop.to));
  }
  if (!e.route.empty()) {
    data["ends"].push_back(rounded(place(p, ends_of(p, e.route.front().link).from)));
    data["ends"].push_back(rounded(place(p, ends_of(p, e.route.back().link).to)));
  }
  for (const auto& c : e.to_data) {
    costs += fmt::format("<tr><td class=\"n\">{}</td><td>{}</td><td>{}</td></tr>", to_string(c.time),
                         html_escaped(c.what), html_escaped(c.source));
  }
  costs += fmt::format("<tr><td class=\"n\"><b>{}</b></td><td><b>data visible</b></td><td></td></tr>",
                       to_string(e.quote.data_at));
  const std::string json = script_data(data);
  std::string page = kPage;
  fill_in(&page, "%TITLE%", html_escaped(m.description.title));
  fill_in(&page, "%SUMMARY%",
          fmt::format("{} nodes, {}. {} of {} B from node {} ({}) to node {} ({}).", p.nodes,
                      model::network_name(p.network), model::op_name(request.op), request.bytes, request.src,
                      html_escaped(model::place_of(p, request.src)), request.dst,
                      html_escaped(model::place_of(p, request.dst))));
  fill_in(&page, "%HOPS%", std::to_string(e.route.size()));
  fill_in(&page, "%ROUTE%", route);
  fill_in(&page, "%OPERATION%", fmt::format("{}, {} B", model::op_name(request.op), request.bytes));
  fill_in(&page, "%COSTS%", costs);
  fill_in(&page, "%DATA%", json);
  return {std::move(page), data["routers"].size(), data["wires"].size(), e};
}

int draw(const DrawOptions& options) {
  model::MachineFile file = model::load_machine(options.machine);
  if (!file.description) return usage_error(file.error);
  if (const std::string problem = read_sizes(options, &*file.description); !problem.empty())
    return usage_error(problem);
  const model::BuiltMachine built = model::compile(*file.description);
  if (!built.machine) return usage_error(built.error);
  const std::int64_t last = built.machine->pricing.nodes - 1, dst = options.dst.value_or(last);
  if (options.src < 0 || options.src > last)
    return usage_error(fmt::format("--src {}: expected a node 0..{}", options.src, last));
  if (dst < 0 || dst > last) return usage_error(fmt::format("--dst {}: expected a node 0..{}", dst, last));
  const auto op = model::op_by_name(options.operation);
  if (!op && model::build_machine(options.operation).machine)
    return usage_error(
        fmt::format("'{0}' stands where an operation is expected: the machine is given by --machine {0}",
                    options.operation));
  if (!op)
    return usage_error(fmt::format(
        "--operation '{}': expected one of the operations that 'orrery explain' lists", options.operation));
  const Drawing drawing = drawing_of(*built.machine, {.op = *op,
                                                      .src = static_cast<model::NodeId>(options.src),
                                                      .dst = static_cast<model::NodeId>(dst),
                                                      .bytes = options.bytes});
  std::ofstream out(options.out, std::ios::binary);
  out << drawing.page;
  out.close();
  if (!out) return usage_error(fmt::format("--out {}: cannot be written", options.out));
  if (!options.json) {
    fmt::print("{}: {} bytes\n", options.out, drawing.page.size());
    return 0;
  }
  nlohmann::json route = nlohmann::json::array();
  for (const auto& hop : drawing.explained.route) {
    route.push_back({{"from", hop.from}, {"by", hop.by}, {"to", hop.to}});
  }
  fmt::print("{}\n", nlohmann::json{{"out", options.out},
                                    {"bytes", drawing.page.size()},
                                    {"machine", built.machine->description.name},
                                    {"nodes", last + 1},
                                    {"routers", drawing.routers},
                                    {"wires", drawing.wires},
                                    {"source", options.src},
                                    {"target", dst},
                                    {"operation", model::op_name(*op)},
                                    {"data_at_ps", drawing.explained.quote.data_at.count()},
                                    {"route", route}}
                         .dump(2));
  return 0;
}

}  // namespace

void add_draw(CLI::App& root, int& exit_code) {
  auto options = std::make_shared<DrawOptions>();
  auto* command = root.add_subcommand("draw", "A machine and a route as one HTML page");
  command->add_option("--machine", options->machine, "A machine's name or file")->capture_default_str();
  command->add_option("--out", options->out, "The page to write")->required();
  command->add_option("--groups", options->groups, "Groups of a dragonfly, instead of the file's");
  command->add_option("--cables", options->cables,
                      "Cables of a bundle, instead of the file's; 0: as many as fit");
  command->add_option("--levels", options->levels, "Levels of a fat tree, instead of the file's");
  command->add_option("--size", options->size, "X Y Z of a torus, in nodes, instead of the file's")
      ->expected(3);
  // As 'orrery explain' has them: words in this order, or options.
  command->add_option("operation,--operation", options->operation, "What is sent")->capture_default_str();
  command->add_option("source,--src", options->src, "Source node of the route")->capture_default_str();
  command->add_option("target,--dst", options->dst, "Target node of the route; the last one if not given");
  command->add_option("bytes,--bytes", options->bytes, "Bytes that are sent")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print what was drawn as JSON");
  command->callback([options, &exit_code] { exit_code = draw(*options); });
}

}  // namespace orrery::tool
