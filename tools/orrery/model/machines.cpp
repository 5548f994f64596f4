// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/link_state.hpp"
#include "emu/model/machine.hpp"
#include "emu/model/machine_file.hpp"
#include "emu/model/operation_words.hpp"
#include "emu/model/routing.hpp"
#include "tools/orrery/subcommand.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace orrery::tool {

namespace {

struct MachinesOptions {
  std::string print;
  bool json = false, routing = false, operations = false;
};

std::string limits_of(model::Network network) {
  switch (network) {
    case model::Network::dragonfly:
      return "1..241 groups of 384 nodes (92,544); the last of 1..6 chassis";
    case model::Network::gemini_torus:
      return "class, cabinets, rows or x, y (even), z; paths of up to 128 hops";
    case model::Network::seastar_torus:
      return "class, cabinets, rows or x, y, z; paths of up to 128 hops";
    case model::Network::bluegene_torus:
      return "x, y, z; paths of up to 128 hops";
    case model::Network::fat_tree:
      return "1..8 levels (4 .. 65,536 nodes)";
    case model::Network::crossbar:
      return "1..1,048,576 nodes";
  }
  return "";
}

std::string size_of(const model::Machine& m) {
  const auto& p = m.pricing;
  switch (p.network) {
    case model::Network::dragonfly:
      return fmt::format("{} groups, {} cables a bundle", p.dragonfly.groups(), p.dragonfly.bundle());
    case model::Network::fat_tree:
      return fmt::format("{} levels, {} switches", p.tree.levels(), p.tree.switches());
    case model::Network::crossbar:
      return "no network";
    default: {
      const auto& n = p.torus.shape().nodes;
      return fmt::format("{} x {} x {} nodes", n[0], n[1], n[2]);
    }
  }
}

int print_routing(bool json) {
  nlohmann::json rows = nlohmann::json::array();
  for (const model::RoutingWord& w : model::routing_words()) {
    if (json) {
      rows.push_back({{"api", w.api},
                      {"word", w.word},
                      {"value", w.value},
                      {"mode", model::routing_name(w.routing)},
                      {"also", w.effect}});
    } else {
      fmt::print("{:<8} {:<24} {:>5}  {:<19} {}\n", w.api, w.word,
                 w.value < 0 ? "" : fmt::format("{:#x}", w.value), model::routing_name(w.routing), w.effect);
    }
  }
  nlohmann::json effects = nlohmann::json::array();
  for (int n = 0; n <= static_cast<int>(model::Network::crossbar); ++n) {
    for (int r = 0; r < model::kRoutings; ++r) {
      const auto network = static_cast<model::Network>(n);
      const auto routing = static_cast<model::Routing>(r);
      if (json) {
        effects.push_back({{"network", model::network_name(network)},
                           {"mode", model::routing_name(routing)},
                           {"does", model::routing_effect(network, routing)},
                           {"in_order", model::keeps_order(network, routing)}});
      } else {
        fmt::print("{:<20} {:<19} {}{}\n", model::network_name(network), model::routing_name(routing),
                   model::routing_effect(network, routing),
                   model::keeps_order(network, routing) ? "; in order" : "");
      }
    }
  }
  if (json) fmt::print("{}\n", nlohmann::json{{"words", rows}, {"effects", effects}}.dump(2));
  return 0;
}

int print_operations(bool json) {
  nlohmann::json rows = nlohmann::json::array();
  for (const model::OperationWord& w : model::operation_words()) {
    if (json) {
      rows.push_back(
          {{"api", w.api}, {"word", w.word}, {"priced_as", model::priced_name(w.priced)}, {"note", w.note}});
    } else {
      fmt::print("{:<34} {:<17} {}\n", fmt::format("{}.{}", w.api, w.word), model::priced_name(w.priced),
                 w.note);
    }
  }
  if (json) fmt::print("{}\n", rows.dump(2));
  return 0;
}

int machines(const MachinesOptions& options) {
  if (options.operations) return print_operations(options.json);
  if (options.routing) return print_routing(options.json);
  if (!options.print.empty()) {
    for (const model::ShippedFile& shipped : model::shipped_machines()) {
      if (shipped.name != options.print) continue;
      fmt::print("{}", shipped.text);
      return 0;
    }
    return usage_error(model::load_machine(options.print).error.empty()
                           ? "machine '" + options.print + "' is a file already"
                           : model::load_machine(options.print).error);
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const model::ShippedFile& shipped : model::shipped_machines()) {
    const model::BuiltMachine built = model::build_machine(std::string(shipped.name));
    if (!built.machine) return usage_error(built.error);
    const model::Machine& m = *built.machine;
    const auto exact = model::LinkState::bytes_needed(m.pricing, model::LinkState::Kind::exact);
    const auto decayed = model::LinkState::bytes_needed(m.pricing, model::LinkState::Kind::decayed);
    if (options.json) {
      rows.push_back({{"name", m.description.name},
                      {"title", m.description.title},
                      {"paper", m.description.paper},
                      {"network", model::network_name(m.pricing.network)},
                      {"nodes", m.pricing.nodes},
                      {"size", size_of(m)},
                      {"limits", limits_of(m.pricing.network)},
                      {"warnings", m.warnings},
                      {"link_state_bytes", {{"exact", exact}, {"decayed", decayed}}}});
      continue;
    }
    fmt::print(
        "{:<11} {}: {} nodes ({}), {}\n            limits: {}\n            link state: exact {} B, decayed "
        "{} B\n            {}\n",
        m.description.name, m.description.title, m.pricing.nodes, size_of(m),
        model::network_name(m.pricing.network), limits_of(m.pricing.network), exact, decayed,
        m.description.paper);
    for (const std::string& warning : m.warnings) fmt::print("            note: {}\n", warning);
  }
  if (options.json) fmt::print("{}\n", rows.dump(2));
  return 0;
}

}  // namespace

void add_machines(CLI::App& root, int& exit_code) {
  auto options = std::make_shared<MachinesOptions>();
  auto* command = root.add_subcommand("machines", "The machines that come with Orrery: names, sizes, limits");
  command->add_option("--print", options->print, "Print that machine's file, to copy and change");
  command->add_flag("--routing", options->routing, "Print how the APIs' routing words map to each machine");
  command->add_flag("--operations", options->operations, "Print as what each API's operations are priced");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &exit_code] { exit_code = machines(*options); });
}

}  // namespace orrery::tool
