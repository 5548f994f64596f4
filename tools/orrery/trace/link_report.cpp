// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/trace/link_report.hpp"

#include "emu/model/explain.hpp"
#include "emu/model/operation.hpp"
#include "tools/orrery/model/topology_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace orrery::tool {

namespace {

constexpr std::size_t kTimeSlices = 64;    // of the run's time
constexpr std::size_t kReportRows = 20;    // of a table
constexpr std::size_t kAllRouters = 4000;  // more are not drawn but where something went by

struct Load {
  std::uint64_t bytes = 0, messages = 0;
  Picos waited;                             // of those messages, anywhere on their way
  std::array<double, kTimeSlices> slice{};  // bytes by time
  double peak() const { return *std::max_element(slice.begin(), slice.end()); }
};

struct Loads {
  struct Link {
    std::string by, from, to;  // in the machine's own words
    Load load;
  };
  std::map<std::pair<model::RouterId, model::RouterId>, Link> links;
  std::map<model::NodeId, Load> nodes;  // that data came to
  std::uint64_t messages = 0, detoured = 0, bytes = 0;
  Picos begun, ended;
};

// Its bytes, evenly over the time from the call to the data.
void add_load(Load* load, const clock::Recorded& r, Picos begun, Picos whole) {
  load->bytes += r.request.bytes;
  ++load->messages;
  load->waited += r.quote.waited;
  const auto at = [&](Picos t) {
    const double part = static_cast<double>((t - begun).count()) / static_cast<double>(whole.count());
    return std::min(kTimeSlices - 1, static_cast<std::size_t>(std::max(0.0, part) * kTimeSlices));
  };
  const std::size_t first = at(r.request.now), last = at(r.quote.data_at);
  for (std::size_t i = first; i <= last; ++i)
    load->slice[i] += static_cast<double>(r.request.bytes) / static_cast<double>(last - first + 1);
}

Loads loads_of(const model::Machine& m, const std::vector<clock::Recorded>& records) {
  const model::Pricing& p = m.pricing;
  Loads all;
  bool any = false;
  for (const clock::Recorded& r : records) {
    if (r.uncontended) continue;
    all.begun = any ? std::min(all.begun, r.request.now) : r.request.now;
    all.ended = any ? std::max(all.ended, r.quote.data_at) : r.quote.data_at;
    any = true;
  }
  const Picos whole = std::max(all.ended - all.begun, Picos{1});
  for (const clock::Recorded& r : records) {
    // What comes from a file is not taken on trust: another machine's nodes are not ours.
    if (r.uncontended || r.request.src >= p.nodes || r.request.dst >= p.nodes) continue;
    ++all.messages;
    all.detoured += r.quote.detoured ? 1 : 0;
    all.bytes += r.request.bytes;
    const bool get = p.ops[static_cast<std::size_t>(r.request.op)].flow == model::Flow::get;
    add_load(&all.nodes[get ? r.request.src : r.request.dst], r, all.begun, whole);
    const model::Route route = model::route_of(p, r.request);
    for (const model::LinkId link : route) {
      const model::LinkEnds ends = ends_of(p, link);
      const auto [found, is_new] = all.links.try_emplace({ends.from, ends.to});
      if (is_new) {
        model::Route one;
        one.push(link);
        const model::ExplainedHop hop = model::describe_route(p, one).front();
        // "x+ tile 3": the others of the bundle are the same link here.
        found->second.by = hop.by.substr(0, hop.by.find(' '));
        found->second.from = hop.from;
        found->second.to = hop.to;
      }
      add_load(&found->second.load, r, all.begun, whole);
    }
  }
  return all;
}

double gigabytes_per_second(double bytes, Picos time) { return bytes / std::max(time.nanos(), 1e-3); }

std::string load_row(const std::string& what, const Load& load, Picos whole) {
  const Picos slice{std::max<std::int64_t>(whole.count() / static_cast<std::int64_t>(kTimeSlices), 1)};
  return fmt::format(
      "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:.3f}</td>"
      "<td class=\"n\">{:.3f}</td><td class=\"n\">{:.3f}</td></tr>\n",
      html_escaped(what), load.messages, load.bytes,
      gigabytes_per_second(static_cast<double>(load.bytes), whole), gigabytes_per_second(load.peak(), slice),
      load.waited.micros() / static_cast<double>(std::max<std::uint64_t>(load.messages, 1)));
}

constexpr const char* kReportPage = R"page(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>%TITLE%: link loads</title>
<style>
body{font:14px system-ui,sans-serif;margin:1.5em;color:#222;background:#fff}
svg{width:100%;height:70vh;border:1px solid #ddd}
.router{fill:#8899aa}.wire{stroke:#e8ecf0;stroke-width:1}.link{stroke-linecap:round}
.spot{fill:none;stroke:#c22;stroke-width:2}
td,th{padding:.1em .8em .1em 0;text-align:left}td.n,th.n{text-align:right}
</style></head><body>
<h1>%TITLE%: link loads</h1><p>%SUMMARY%</p>
<svg id="picture" role="img" aria-label="%TITLE%"></svg>
<p>Links are coloured by the bytes that went over them, from blue (few) to red (the busiest); circles are
the nodes' routers that most was sent to.</p>
<h2>Busiest links</h2><table id="links"><tr><th>link</th>%HEAD%</tr>%LINKS%</table>
<h2>Nodes that most was sent to</h2>
<table id="nodes"><tr><th>node</th>%HEAD%</tr>%NODES%</table>
<script type="application/json" id="data">%DATA%</script>
<script>
const d=JSON.parse(document.getElementById("data").textContent),s=document.getElementById("picture");
const add=(n,a,t)=>{
const e=document.createElementNS("http://www.w3.org/2000/svg",n);
for(const k in a)e.setAttribute(k,a[k]);
if(t){const x=document.createElementNS("http://www.w3.org/2000/svg","title");x.textContent=t;e.appendChild(x)}
s.appendChild(e)};
const xs=d.routers.map(p=>p[0]),ys=d.routers.map(p=>p[1]);
const low=v=>v.reduce((a,b)=>Math.min(a,b),0),high=v=>v.reduce((a,b)=>Math.max(a,b),1);
const m=20,x=xs.length?xs.reduce((a,b)=>Math.min(a,b))-m:0,y=ys.length?ys.reduce((a,b)=>Math.min(a,b))-m:0;
s.setAttribute("viewBox",[x,y,high(xs)-x+m,high(ys)-y+m].join(" "));
for(const [a,b] of d.wires)add("line",{x1:a[0],y1:a[1],x2:b[0],y2:b[1],class:"wire"});
for(const p of d.routers)add("circle",{cx:p[0],cy:p[1],r:2,class:"router"});
for(const l of d.links)add("line",{x1:l.from[0],y1:l.from[1],x2:l.to[0],y2:l.to[1],class:"link",
stroke:"hsl("+Math.round(240*(1-l.share))+",85%,45%)","stroke-width":1+3*l.share},l.title);
for(const p of d.spots)add("circle",{cx:p[0],cy:p[1],r:6,class:"spot"});
document.body.dataset.links=s.querySelectorAll(".link").length;
document.body.dataset.routers=s.querySelectorAll(".router").length;
document.body.dataset.messages=d.messages;
document.body.dataset.hottest=d.links.length?d.links[d.links.length-1].bytes:0;
</script></body></html>
)page";

model::RouterId router_place(const model::Pricing& p, model::NodeId node) {
  switch (p.network) {
    case model::Network::dragonfly:
      return p.dragonfly.router_of(node);
    case model::Network::fat_tree:
      return p.tree.switches() + node;
    case model::Network::crossbar:
      return node;
    default:
      return p.torus.router_of(node);
  }
}

}  // namespace

std::string link_report(const model::Machine& m, const std::vector<clock::Recorded>& records) {
  const model::Pricing& p = m.pricing;
  const Loads all = loads_of(m, records);
  const Picos whole = std::max(all.ended - all.begun, Picos{1});

  std::vector<const std::pair<const std::pair<model::RouterId, model::RouterId>, Loads::Link>*> links;
  for (const auto& link : all.links) links.push_back(&link);
  // The busiest last: it is drawn over the others.
  std::stable_sort(links.begin(), links.end(),
                   [](const auto* a, const auto* b) { return a->second.load.bytes < b->second.load.bytes; });
  std::vector<std::pair<model::NodeId, const Load*>> nodes;
  for (const auto& [node, load] : all.nodes) nodes.emplace_back(node, &load);
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const auto& a, const auto& b) { return a.second->bytes > b.second->bytes; });
  nodes.resize(std::min(nodes.size(), kReportRows));

  nlohmann::json data;
  for (const char* list : {"routers", "wires", "links", "spots"}) data[list] = nlohmann::json::array();
  const std::uint32_t count = vertices(p);
  std::set<model::RouterId> shown;
  if (count <= kAllRouters) {
    for (model::RouterId r = 0; r < count; ++r) shown.insert(r);
    for (const auto& [a, b] : wires(p)) data["wires"].push_back({rounded(a), rounded(b)});
  }
  for (const auto* link : links) shown.insert({link->first.first, link->first.second});
  for (const auto& [node, load] : nodes) {
    shown.insert(router_place(p, node));
    data["spots"].push_back(rounded(place(p, router_place(p, node))));
  }
  for (const model::RouterId r : shown) data["routers"].push_back(rounded(place(p, r)));
  const double most =
      links.empty() ? 1 : static_cast<double>(std::max<std::uint64_t>(links.back()->second.load.bytes, 1));
  std::string link_rows, node_rows;
  for (const auto* link : links) {
    const auto& [by, from, to, load] = link->second;
    data["links"].push_back({{"from", rounded(place(p, link->first.first))},
                             {"to", rounded(place(p, link->first.second))},
                             {"share", static_cast<double>(load.bytes) / most},
                             {"bytes", load.bytes},
                             {"title", fmt::format("{} {} to {}: {} B in {} messages", by, from, to,
                                                   load.bytes, load.messages)}});
  }
  for (std::size_t i = 0; i < std::min(kReportRows, links.size()); ++i) {
    const auto& [by, from, to, load] = links[links.size() - 1 - i]->second;
    link_rows += load_row(fmt::format("{}: {} to {}", by, from, to), load, whole);
  }
  for (const auto& [node, load] : nodes)
    node_rows += load_row(fmt::format("node {} ({})", node, model::place_of(p, node)), *load, whole);
  data["messages"] = all.messages;

  std::string summary = fmt::format(
      "{} nodes, {}. {} messages with {} B in {:.3f} us of the machine's time, over {} links.", p.nodes,
      model::network_name(p.network), all.messages, all.bytes, whole.micros(), all.links.size());
  if (all.detoured != 0)
    summary += fmt::format(" {} messages went round a loaded link; they are counted on their minimal routes.",
                           all.detoured);
  std::string page = kReportPage;
  fill_in(&page, "%TITLE%", html_escaped(m.description.title));
  fill_in(&page, "%SUMMARY%", html_escaped(summary));
  fill_in(&page, "%HEAD%",
          "<th class=\"n\">messages</th><th class=\"n\">bytes</th><th class=\"n\">mean GB/s</th>"
          "<th class=\"n\">peak GB/s</th><th class=\"n\">mean wait of its messages, us</th>");
  fill_in(&page, "%LINKS%", link_rows);
  fill_in(&page, "%NODES%", node_rows);
  fill_in(&page, "%DATA%", script_data(data));
  return page;
}

}  // namespace orrery::tool
