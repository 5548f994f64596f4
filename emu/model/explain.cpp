// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/explain.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::model {

namespace {

std::string provenance(const Constant& c) {
  std::string rows;
  for (const std::string& row : c.rows) rows += (rows.empty() ? "" : ", ") + row;
  if (c.fitted)
    rows = "fitted to " + rows + (c.source.empty() ? "" : "; " + c.source);
  else
    rows = rows.empty() ? c.source : fmt::format("{} [{}]", c.source, rows);
  return fmt::format("({}) {}", error_text(c), rows);
}

class Explainer {
 public:
  Explainer(const Machine& machine, const QuoteRequest& request)
      : d_(machine.description),
        p_(machine.pricing),
        r_(request),
        op_(d_.ops[static_cast<std::size_t>(request.op)]),
        price_(p_.ops[static_cast<std::size_t>(request.op)]) {}

  Explanation run() {
    out_.quote = quote(p_, r_, nullptr);
    out_.lacks = op_.lacks;
    const Route route = route_of(p_, r_);
    out_.route = describe_route(p_, route);
    const bool get = price_.flow == Flow::get;
    auto* to = &out_.to_data;
    stages(Part::cpu, to);
    stages(Part::out, to);
    if (get) {
      network(route, "request, ", to);
      out_.target_from = total(*to) + price_.store(r_.bytes);  // its last request
      stages(Part::turn, to);
    }
    network(route, get ? "response, " : "", to);
    stream(to);
    stages(Part::in, to);
    if (r_.bytes > price_.inline_limit) stages(Part::beyond, to);
    const Picos landed = total(*to);
    if (!get) out_.target_from = landed;
    stages(Part::remote_event, &out_.at_target);
    local(route, landed);
    return std::move(out_);
  }

 private:
  static Picos total(const std::vector<ExplainedCost>& costs) {
    Picos sum;
    for (const ExplainedCost& cost : costs) sum += cost.time;
    return sum;
  }

  void stages(Part part, std::vector<ExplainedCost>* to) {
    for (const std::string& name : op_.parts[static_cast<std::size_t>(part)]) {
      const Constant* c = d_.find(name);
      to->push_back({fmt::format("{} ({})", name, part_meaning(part)), stage_time(d_, name), provenance(*c)});
    }
  }

  void network(const Route& route, std::string_view which, std::vector<ExplainedCost>* to) {
    if (route.empty()) return;
    if (p_.network != Network::fat_tree) {
      to->push_back({fmt::format("{}{} hops of link.hop {}", which, route.size(), to_string(p_.hop)),
                     p_.hop * static_cast<std::int64_t>(route.size()), provenance(*d_.find("link.hop"))});
      if (p_.network != Network::dragonfly || p_.global_cable.count() == 0) return;
      const auto crossings = std::count_if(route.begin(), route.end(), [&](LinkId link) {
        return p_.dragonfly.colour(link) == LinkColour::blue;
      });
      if (crossings != 0)
        to->push_back(
            {fmt::format("{}{} links of link.global_cable {}", which, crossings, to_string(p_.global_cable)),
             p_.global_cable * crossings, provenance(*d_.find("link.global_cable"))});
      return;
    }
    const auto switches = static_cast<std::int64_t>(route.size()) - 1;
    to->push_back({fmt::format("{}{} switches of link.hop {}", which, switches, to_string(p_.hop)),
                   p_.hop * switches, provenance(*d_.find("link.hop"))});
    const Picos near{d_.value("link.cable_near")}, far{d_.value("link.cable_far")};
    to->push_back({fmt::format("{}2 cables of link.cable_near", which), near * 2,
                   provenance(*d_.find("link.cable_near"))});
    if (switches / 2 >= d_.value("link.far_boundary")) {
      to->push_back({fmt::format("{}2 cables of link.cable_far", which), far * 2,
                     provenance(*d_.find("link.cable_far"))});
    }
  }

  // What bounds the rate, found as quote() finds it.
  void stream(std::vector<ExplainedCost>* to) {
    const DerivedRates rates = derive_rates(d_);
    const auto n = static_cast<double>(r_.bytes);
    // What the quote has beyond all other lines is the stream.
    Picos rest = out_.quote.data_at - r_.now - total(*to);
    for (const std::string& name : op_.parts[static_cast<std::size_t>(Part::in)])
      rest -= stage_time(d_, name);
    if (r_.bytes > price_.inline_limit) rest -= price_.beyond;
    if (r_.bytes == 0) return;
    // One packet's circuit is not held up by its round trip, which the next one's waits for.
    const bool tree = p_.network == Network::fat_tree, one_circuit = tree && r_.bytes <= p_.packet.payload;
    const PerByte network =
        one_circuit ? p_.shared_link[0][0] : p_.path[is_adaptive(r_.routing)][path_class()][0];
    // The constant that most bounds the rate; what packets have beside their data counts too.
    const bool global = p_.network == Network::dragonfly && path_class() == 2;
    const char* bound = global ? "link.global_lane_rate" : "link.lane_rate";
    std::string source;
    if (price_.curved) {
      out_.streams_at =
          fmt::format("curve: {} a byte up to {}, {} beyond", constant_text(*d_.find(op_.below)),
                      constant_text(*d_.find(op_.knee)), constant_text(*d_.find(op_.above)));
      source = provenance(*d_.find(op_.below));
    } else if (const std::uint64_t packet = std::min<std::uint64_t>(r_.bytes, p_.packet.payload);
               !tree && p_.path[0][path_class()][0](packet) > std::max(network, price_.host_lone)(r_.bytes)) {
      out_.streams_at = "a packet on one link";
    } else if (price_.store > std::max(network, price_.host_lone)) {
      out_.streams_at = "the processor's stores";
      source = provenance(*d_.find(op_.store));
    } else if (network > price_.host_lone) {
      out_.streams_at = "network path";
    } else if (price_.host_lone.scaled() == 0) {
      out_.streams_at = "nothing";
      source = "no limit";
    } else {
      const bool nic = !rates.nic.unlimited() && rates.nic < rates.host_put;
      out_.streams_at = nic ? "NIC" : "host interface";
      bound = nic ? "nic.clock" : "host.rate";
    }
    if (source.empty()) source = fmt::format("{}: {}", bound, provenance(*d_.find(bound)));
    const double rate = rest.count() > 0 ? n / static_cast<double>(rest.count()) * 1e3 : 0;
    to->push_back({rest.count() > 0 ? fmt::format("{} B at {:.3f} GB/s ({})", r_.bytes, rate, out_.streams_at)
                                    : fmt::format("{} B at no cost", r_.bytes),
                   rest, source});
  }

  std::size_t path_class() const {
    const NodeId a = r_.src, b = r_.dst;
    switch (p_.network) {
      case Network::dragonfly: {
        const RouterId x = p_.dragonfly.router_of(a), y = p_.dragonfly.router_of(b);
        if (x == y) return 0;
        return p_.dragonfly.group_of_router(x) == p_.dragonfly.group_of_router(y) ? 1 : 2;
      }
      case Network::fat_tree:
        return a == b ? 0 : FatTree::nca_level(a, b) + 1;
      case Network::crossbar:
        return 0;
      default: {
        // Which way round does not change the dimensions.
        const auto steps = p_.torus.steps(p_.torus.router_of(a), p_.torus.router_of(b), 0);
        return static_cast<std::size_t>((steps[0] != 0) | (steps[1] != 0) << 1 | (steps[2] != 0) << 2);
      }
    }
  }

  void local(const Route& route, Picos landed) {
    auto* to = &out_.to_local;
    switch (price_.flow) {
      case Flow::put:
        out_.local_from = landed;
        stages(Part::turn, to);
        network(route, "response, ", to);
        stages(Part::back, to);
        break;
      case Flow::get:
        out_.local_from = landed;
        stages(Part::back, to);
        break;
      case Flow::posted:
        stages(Part::cpu, to);
        stages(Part::out, to);
        if (r_.bytes > 0) {
          Picos sent = out_.quote.local_event_at - r_.now - total(*to);
          for (const std::string& name : op_.parts[static_cast<std::size_t>(Part::local_event)]) {
            sent -= stage_time(d_, name);
          }
          to->push_back({fmt::format("{} B leave ({})", r_.bytes, out_.streams_at), sent, "as above"});
        }
        break;
    }
    stages(Part::local_event, to);
  }

  const Description& d_;
  const Pricing& p_;
  const QuoteRequest& r_;
  const OpDescription& op_;
  const OpPrice& price_;
  Explanation out_;
};

std::string router_name(const Pricing& p, RouterId r) {
  switch (p.network) {
    case Network::dragonfly:
      return fmt::format("group {} chassis {} slot {}", p.dragonfly.group_of_router(r),
                         r / Dragonfly::kSlots % Dragonfly::kChassis, r % Dragonfly::kSlots);
    case Network::fat_tree:
      if (r >= p.tree.switches()) return fmt::format("node {}", r - p.tree.switches());
      return fmt::format("level {} switch {}", r / p.tree.switches_per_level(),
                         r % p.tree.switches_per_level());
    case Network::crossbar:
      return fmt::format("node {}", r);
    default: {
      const auto c = p.torus.router_coordinates(r).at;
      return fmt::format("({},{},{})", c[0], c[1], c[2]);
    }
  }
}

}  // namespace

Explanation explain(const Machine& machine, const QuoteRequest& request) {
  return Explainer(machine, request).run();
}

std::vector<ExplainedCost> explain_stages(const Machine& machine, Collective collective) {
  const Description& d = machine.description;
  const CollectiveDescription& c = d.collectives[static_cast<std::size_t>(collective)];
  std::vector<ExplainedCost> costs;
  const auto add = [&](const std::vector<std::string>& names, const char* meaning) {
    for (const std::string& name : names)
      costs.push_back(
          {fmt::format("{} ({})", name, meaning), stage_time(d, name), provenance(*d.find(name))});
  };
  add(c.base, "the first levels together");
  add(c.per_level, "each level beyond");
  add(c.once, "once");
  return costs;
}

std::string place_of(const Pricing& p, NodeId node) {
  switch (p.network) {
    case Network::dragonfly: {
      const DragonflyPlace at = p.dragonfly.place(node);
      return fmt::format("group {} chassis {} slot {} NIC {}", at.group, at.chassis, at.slot, at.nic);
    }
    case Network::fat_tree:
      return fmt::format("port {} of level 0 switch {}", node % FatTree::kArity, node / FatTree::kArity);
    case Network::crossbar:
      return fmt::format("node {}", node);
    case Network::gemini_torus: {
      const auto c = p.torus.coordinates(node).at;
      return fmt::format("({},{},{}), Gemini {} NIC {}", c[0], c[1], c[2],
                         router_name(p, p.torus.router_of(node)), p.torus.nic_of(node));
    }
    default: {
      const auto c = p.torus.coordinates(node).at;
      return fmt::format("({},{},{})", c[0], c[1], c[2]);
    }
  }
}

Route route_of(const Pricing& p, const QuoteRequest& r) {
  const bool get = p.ops[static_cast<std::size_t>(r.op)].flow == Flow::get;
  const NodeId from = get ? r.dst : r.src, to = get ? r.src : r.dst;
  const std::uint64_t seed = path_seed(r.routing, r.seed, from, to);
  Route route;
  switch (p.network) {
    case Network::dragonfly: {
      const RouterId a = p.dragonfly.router_of(from), b = p.dragonfly.router_of(to);
      if (r.routing == Routing::hashed_non_minimal && a != b) {
        p.dragonfly.valiant(a, b, seed, &route);
      } else {
        p.dragonfly.minimal(a, b, seed, &route);
      }
      break;
    }
    case Network::fat_tree:
      p.tree.route(from, to, seed, &route);
      break;
    case Network::crossbar:
      break;
    default: {
      const bool fixed_order = p.network == Network::bluegene_torus && !is_adaptive(r.routing);
      return p.torus.route(from, to, {fixed_order ? TorusOrder::dimension : TorusOrder::direction, seed});
    }
  }
  return route;
}

std::vector<ExplainedHop> describe_route(const Pricing& p, const Route& route) {
  std::vector<ExplainedHop> hops;
  for (const LinkId link : route) {
    ExplainedHop hop;
    hop.link = link;
    LinkEnds ends;
    switch (p.network) {
      case Network::dragonfly:
        ends = p.dragonfly.ends(link);
        hop.by = colour_name(p.dragonfly.colour(link));
        break;
      case Network::fat_tree:
        ends = p.tree.ends(link);
        hop.by = p.tree.is_up(link) ? "up" : "down";
        break;
      case Network::crossbar:
        break;
      default:
        ends = p.torus.ends(link);
        hop.by = direction_name(p.torus.direction_of(link));
        if (p.network == Network::gemini_torus)
          hop.by += fmt::format(" tile link {}", p.torus.parallel_index(link));
    }
    hop.from = router_name(p, ends.from);
    hop.to = router_name(p, ends.to);
    hops.push_back(std::move(hop));
  }
  return hops;
}

}  // namespace orrery::model
