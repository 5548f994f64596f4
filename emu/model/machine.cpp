// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/machine.hpp"

#include "emu/model/link_state.hpp"
#include "emu/model/machine_file.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::model {

namespace {

Rate scaled(Rate rate, double factor) {
  return Rate::from_bytes_per_second(
      static_cast<std::uint64_t>(static_cast<double>(rate.bytes_per_second()) * factor + 0.5));
}

Rate rate_of(const Description& d, std::string_view name) {
  return Rate::from_bytes_per_second(static_cast<std::uint64_t>(d.value(name)));
}

PacketPrice packet_price(const Description& d) {
  const auto get = [&](std::string_view key) {
    return static_cast<std::uint32_t>(d.value(fmt::format("packet.{}", key)));
  };
  PacketPrice p;
  p.payload = get("payload");
  p.word = get("word");
  p.phits_per_word = get("phits_per_word");
  p.extra = get("extra");
  p.put_request = get("put_request");
  p.put_response = get("put_response");
  p.get_request = get("get_request");
  p.get_response = get("get_response");
  p.phit_bits = get("phit_bits");
  return p;
}

PerByte slower(PerByte a, PerByte b) { return std::max(a, b); }

// Fills shape; returns what is wrong, empty if nothing.
std::string torus_problem(const Description& d, Machine* out) {
  const auto has = [&](std::string_view key) { return d.find(fmt::format("topology.{}", key)) != nullptr; };
  const auto get = [&](std::string_view key) {
    return static_cast<std::uint32_t>(d.value(fmt::format("topology.{}", key)));
  };
  const bool by_class = has("class") || has("cabinets") || has("rows");
  const bool by_size = has("x") || has("y") || has("z");
  if (by_class == by_size || (by_class && !(has("class") && has("cabinets") && has("rows"))) ||
      (by_size && !(has("x") && has("y") && has("z")))) {
    return "topology: expected either class, cabinets and rows, or x, y and z";
  }
  const bool gemini = d.network == Network::gemini_torus, y_closed = d.value("topology.y_closed", 1) != 0;
  TorusShape shape;
  if (by_class) {
    const int system_class = static_cast<int>(get("class"));
    const auto made = gemini ? gemini_shape(system_class, get("cabinets"), get("rows"), y_closed)
                             : seastar_shape(system_class, get("cabinets"), get("rows"), y_closed);
    if (!made.ok()) {
      return fmt::format("topology.rows = {}: class {} has {}", get("rows"), system_class,
                         system_class == 2 ? "two rows" : "one row");
    }
    shape = made.value();
    const std::uint32_t cabinets = get("cabinets") * get("rows");
    if (!gemini_class_covers(system_class, cabinets)) {
      out->warnings.push_back(
          fmt::format("{} cabinets lie outside the range that the paper's table prints for class {}",
                      cabinets, system_class));
    }
  } else {
    shape = gemini ? gemini_shape_of(get("x"), get("y"), get("z"), y_closed)
                   : plain_torus_shape(get("x"), get("y"), get("z"));
    if (!gemini) shape.closed[1] = y_closed;
    if (gemini && get("y") % 2 != 0) return fmt::format("topology.y = {}: expected an even number", get("y"));
  }
  const auto torus = Torus::make(shape);
  if (!torus.ok()) {
    return fmt::format("topology = {} x {} x {}: a path could exceed {} hops, or link ids 32 bits",
                       shape.nodes[0], shape.nodes[1], shape.nodes[2], Route::kCapacity);
  }
  out->pricing.torus = torus.value();
  out->pricing.nodes = torus.value().nodes();
  return {};
}

std::string topology_problem(const Description& d, Machine* out) {
  Pricing& p = out->pricing;
  switch (d.network) {
    case Network::gemini_torus:
    case Network::seastar_torus:
    case Network::bluegene_torus:
      return torus_problem(d, out);
    case Network::dragonfly: {
      const DragonflyShape shape{static_cast<std::uint32_t>(d.value("topology.groups")),
                                 static_cast<std::uint32_t>(d.value("topology.cables")),
                                 static_cast<std::uint32_t>(d.value("topology.last_group_chassis")),
                                 d.value("topology.own_blue_first") != 0};
      const auto made = Dragonfly::make(shape);
      if (!made.ok()) {
        const std::uint32_t most =
            shape.groups < 2 ? 0
                             : Dragonfly::kCablesPerChassis * shape.last_group_chassis / (shape.groups - 1);
        return fmt::format(
            "topology.cables = {}: with {} groups, the last of {} chassis, {}", shape.cables_per_bundle,
            shape.groups, shape.last_group_chassis,
            most == 0 ? "no bundle of cables fits" : fmt::format("expected 0 (as many as fit) .. {}", most));
      }
      p.dragonfly = made.value();
      p.nodes = p.dragonfly.nodes();
      return {};
    }
    case Network::fat_tree:
      p.tree = FatTree::make(static_cast<std::uint32_t>(d.value("topology.levels"))).value();
      p.nodes = p.tree.nodes();
      return {};
    case Network::crossbar:
      p.nodes = static_cast<std::uint32_t>(d.value("topology.nodes"));
      return {};
  }
  return "topology: unknown";
}

PerByte payload_over(Rate wire, double efficiency) {
  return wire.unlimited() ? PerByte{} : PerByte{scaled(wire, efficiency)};
}

void torus_paths(const DerivedRates& r, Pricing* p) {
  for (int dims = 1; dims < 8; ++dims) {
    for (int shared = 0; shared < 2; ++shared) {
      const double efficiency = shared ? r.wire_shared : r.wire_lone;
      PerByte adaptive, fixed;
      int used = 0;
      for (int i = 0; i < 3; ++i) {
        if (!((dims >> i) & 1)) continue;
        ++used;
        const auto& shape = p->torus.shape();
        adaptive =
            slower(adaptive,
                   payload_over(r.torus_link * shape.torus_links[static_cast<std::size_t>(i)], efficiency));
        fixed = slower(fixed, payload_over(r.link, efficiency));
      }
      // Blue Gene's packets may take any hinted direction: a message uses its dimensions side by side.
      if (p->network == Network::bluegene_torus) {
        adaptive = payload_over(r.torus_link * static_cast<std::uint64_t>(used), efficiency);
      }
      const auto at = static_cast<std::size_t>(shared);
      p->path[1][static_cast<std::size_t>(dims)][at] = adaptive;
      p->path[0][static_cast<std::size_t>(dims)][at] = fixed;
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const Rate line = r.torus_link * p->torus.shape().torus_links[i];
    p->shared_link[0][i] = payload_over(line, r.wire_lone);
    p->shared_link[1][i] = payload_over(line, r.wire_shared);
  }
}

void dragonfly_paths(const DerivedRates& r, Pricing* p) {
  const std::uint64_t bundle = std::max<std::uint64_t>(p->dragonfly.links_per_bundle(), 1);
  for (std::size_t shared = 0; shared < 2; ++shared) {
    const double efficiency = shared ? r.wire_shared : r.wire_lone;
    p->path[0][1][shared] = payload_over(r.link, efficiency);
    p->path[0][2][shared] = payload_over(r.global_link, efficiency);
    // Adaptive packets of one message spread over the router's links, in the group and out of it.
    p->path[1][1][shared] = payload_over(r.link * Dragonfly::kLocal, efficiency);
    p->path[1][2][shared] = p->path[1][1][shared];
    p->shared_link[shared][0] = payload_over(r.global_link * bundle, efficiency);
    p->shared_link[shared][1] = payload_over(r.link, efficiency);
    p->shared_link[shared][2] = payload_over(r.link * Dragonfly::kLocal, efficiency);
  }
}

void tree_paths(const Description& d, const DerivedRates& r, Pricing* p) {
  const Picos near{d.value("link.cable_near")}, far{d.value("link.cable_far")};
  for (std::uint32_t level = 0; level < p->tree.levels(); ++level) {
    const std::size_t cls = level + 1;
    Picos one_way = p->hop * (2 * level + 1) + near * 2;
    if (level >= d.value("link.far_boundary")) one_way += far * 2;
    p->tree_latency[cls] = one_way;
    // A packet's circuit is held until its acknowledgement is back at the source.
    for (std::size_t adaptive = 0; adaptive < 2; ++adaptive) {
      for (std::size_t shared = 0; shared < 2; ++shared) {
        p->path[adaptive][cls][shared] =
            slower(payload_over(r.link, shared ? r.wire_shared : r.wire_lone),
                   PerByte::from_scaled(static_cast<std::uint64_t>(2 * one_way.count()) *
                                        (std::uint64_t{1} << PerByte::kShift) / p->packet.payload));
      }
    }
  }
  p->shared_link[0][0] = payload_over(r.link, r.wire_lone);
  p->shared_link[1][0] = payload_over(r.link, r.wire_shared);
}

void price_operations(const Description& d, const DerivedRates& r, Pricing* p) {
  for (std::size_t i = 0; i < kOps; ++i) {
    const OpDescription& from = d.ops[i];
    OpPrice& to = p->ops[i];
    const auto total = [&](Part part) { return stages_total(d, from.parts[static_cast<std::size_t>(part)]); };
    to.flow = from.flow;
    to.cpu = total(Part::cpu);
    to.out = total(Part::out);
    to.in = total(Part::in);
    to.turn = total(Part::turn);
    to.back = total(Part::back);
    const Picos lead = to.cpu + to.out;
    p->lead = i == 0 ? lead : std::min(p->lead, lead);
    to.remote_event = total(Part::remote_event);
    to.local_event = total(Part::local_event);
    to.serve = total(Part::serve);
    to.serial = total(Part::serial);
    to.gap = total(Part::gap);
    to.gap_add = total(Part::gap_add);
    to.beyond = total(Part::beyond);
    to.beyond_gap = total(Part::beyond_gap);
    if (!from.inline_limit.empty()) to.inline_limit = static_cast<std::uint64_t>(d.value(from.inline_limit));
    if (!from.store.empty()) to.store = PerByte::from_picos(stage_time(d, from.store));
    if (!from.knee.empty()) {
      to.curved = true;
      to.knee = static_cast<std::uint64_t>(d.value(from.knee));
      to.below = PerByte::from_picos(stage_time(d, from.below));
      to.above = PerByte::from_picos(stage_time(d, from.above));
    }
    const PerByte nic{r.nic};
    if (from.host == HostUse::none) {
      to.host_lone = to.host_shared = PerByte{};
    } else {
      to.host_shared = slower(nic, PerByte{r.host_shared});
      to.host_lone = from.host == HostUse::both_ways ? to.host_shared : slower(nic, PerByte{r.host_put});
    }
  }
}

}  // namespace

Picos stage_time(const Description& d, const std::string& name) {
  const Constant* c = d.find(name);
  if (c == nullptr) return Picos{};
  if (c->kind != ConstantKind::cycles) return Picos{c->value};
  const double period = 1e12 / static_cast<double>(std::max<std::int64_t>(d.value("nic.clock"), 1));
  return Picos{static_cast<std::int64_t>(static_cast<double>(c->value) / 1e3 * period + 0.5)};
}

Picos stages_total(const Description& d, const std::vector<std::string>& stages) {
  Picos sum;
  for (const std::string& name : stages) sum += stage_time(d, name);
  return sum;
}

DerivedRates derive_rates(const Description& d) {
  DerivedRates r;
  const auto lanes = static_cast<std::uint64_t>(d.value("link.lanes", 1));
  const double layer = static_cast<double>(d.value("link.efficiency", 1'000'000)) / 1e6;
  r.link = rate_of(d, "link.lane_rate") * lanes;
  r.global_link = rate_of(d, "link.global_lane_rate") * lanes;
  r.torus_link =
      r.link * (d.network == Network::gemini_torus ? gemini_shape_of(1, 2, 1).tiles_per_torus_link : 1);
  const PacketPrice p = packet_price(d);
  const std::int64_t cycles = d.value("nic.cycles_per_packet");
  if (cycles > 0) {
    __extension__ using Wide = unsigned __int128;
    r.nic = Rate::from_bytes_per_second(static_cast<std::uint64_t>(
        static_cast<Wide>(p.payload) * static_cast<std::uint64_t>(d.value("nic.clock")) /
        static_cast<std::uint64_t>(cycles)));
  }
  const Rate host = rate_of(d, "host.rate");
  const double payload = p.payload;
  const auto over = static_cast<double>(d.value("host.put_overhead")),
             shared = static_cast<double>(d.value("host.shared_overhead"));
  r.host_put = scaled(host, payload / (payload + over));
  r.host_shared = scaled(host, payload / (payload + shared));
  const double phit_bytes = p.phit_bits / 8.0;
  const double request = p.put_request_phits(p.payload) * phit_bytes, response = p.put_response * phit_bytes;
  if (request > 0) {
    r.wire_lone = layer * payload / request;
    r.wire_shared = layer * payload / (request + response);
  }
  return r;
}

namespace {

// What overheads leave of each rate. A time in picoseconds holds an operation of 1 TiB at 1 MB/s; and a rate
// that was rounded to 0 would be no limit at all.
std::string rate_problem(const Description& d, const DerivedRates& r) {
  constexpr std::uint64_t kLeast = 1'000'000;
  const struct {
    std::string_view of;
    bool unlimited;
    Rate left;
  } parts[] = {
      {"link.lane_rate", r.link.unlimited(), scaled(r.link, std::min(r.wire_lone, r.wire_shared))},
      {"link.global_lane_rate", r.global_link.unlimited(),
       scaled(r.global_link, std::min(r.wire_lone, r.wire_shared))},
      {"host.rate", rate_of(d, "host.rate").unlimited(), std::min(r.host_put, r.host_shared)},
      {"nic.clock", d.value("nic.cycles_per_packet") == 0, r.nic},
  };
  for (const auto& part : parts) {
    if (part.unlimited || part.left.bytes_per_second() >= kLeast) continue;
    return fmt::format("{} = {}: efficiency and headers leave {} B/s for data: expected 1 MB/s or more",
                       part.of, constant_text(*d.find(part.of)), part.left.bytes_per_second());
  }
  return "";
}

}  // namespace

BuiltMachine compile(const Description& d) {
  BuiltMachine built;
  auto machine = std::make_unique<Machine>();
  machine->description = d;
  Pricing& p = machine->pricing;
  p.network = d.network;
  if (const std::string problem = topology_problem(d, machine.get()); !problem.empty()) {
    built.error = fmt::format("{}: {}", d.file, problem);
    return built;
  }
  for (const CollectiveDescription& c : d.collectives) {
    if (!c.after || !d.collectives[static_cast<std::size_t>(*c.after)].after) continue;
    built.error = fmt::format("{}: collective after = \"{}\": expected one that waits for none itself",
                              d.file, collective_name(*c.after));
    return built;
  }
  const DerivedRates rates = derive_rates(d);
  if (const std::string problem = rate_problem(d, rates); !problem.empty()) {
    built.error = fmt::format("{}: {}", d.file, problem);
    return built;
  }
  p.packet = packet_price(d);
  p.hop = Picos{d.value("link.hop")};
  p.global_cable = Picos{d.value("link.global_cable")};
  switch (d.network) {
    case Network::gemini_torus:
    case Network::seastar_torus:
    case Network::bluegene_torus:
      torus_paths(rates, &p);
      break;
    case Network::dragonfly:
      dragonfly_paths(rates, &p);
      break;
    case Network::fat_tree:
      tree_paths(d, rates, &p);
      break;
    case Network::crossbar:
      break;
  }
  for (std::size_t i = 0; i < p.shared_idle.size(); ++i) p.shared_idle[i] = idle_bytes(p.shared_link[1][i]);
  const std::int64_t window = d.value("nic.window") * p.packet.payload;
  if (window > 0) p.window_reciprocal = (std::uint64_t{1} << 40) / static_cast<std::uint64_t>(window);
  price_operations(d, rates, &p);
  built.machine = std::move(machine);
  return built;
}

BuiltMachine build_machine(const std::string& name) {
  MachineFile file = load_machine(name);
  if (!file.description) {
    BuiltMachine built;
    built.error = std::move(file.error);
    return built;
  }
  return compile(*file.description);
}

}  // namespace orrery::model
