// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/explain.hpp"

#include "emu/model/collective.hpp"
#include "emu/model/operation_words.hpp"
#include "tools/orrery/subcommand.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <memory>
#include <optional>

namespace orrery::tool {

namespace {

struct ExplainOptions {
  std::string machine = "gemini", operation, routing = "adaptive_0";
  std::vector<std::string> layers;
  std::vector<std::string> numbers;
  std::string src, dst, bytes;  // as options, empty: not given
  bool json = false;
};

std::string operations() {
  std::string names = "put, get";
  for (int i = 0; i < model::kOps; ++i)
    names += fmt::format(", {}", model::op_name(static_cast<model::Op>(i)));
  for (int i = 0; i < model::kCollectives; ++i) {
    names += fmt::format(", {}", model::collective_name(static_cast<model::Collective>(i)));
  }
  return names;
}

bool read_number(const std::string& text, std::uint64_t low, std::uint64_t high, std::string_view what,
                 std::uint64_t* out, int* exit_code) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error == std::errc{} && end == text.data() + text.size() && *out >= low && *out <= high) return true;
  *exit_code = usage_error(
      fmt::format("{} '{}' is not accepted: expected a whole number {}..{}", what, text, low, high));
  return false;
}

nlohmann::json as_json(const std::vector<model::ExplainedCost>& costs) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& c : costs) out.push_back({{"what", c.what}, {"ps", c.time.count()}, {"source", c.source}});
  return out;
}

Picos print_costs(const std::vector<model::ExplainedCost>& costs, Picos from) {
  for (const auto& c : costs) {
    from += c.time;
    fmt::print("  {:>12} {:>13}  {:<62} {}\n", to_string(c.time), to_string(from), c.what, c.source);
  }
  return from;
}

int explain_collective(const model::Machine& m, model::Collective which, const ExplainOptions& options) {
  if (options.numbers.empty() || options.numbers.size() > 2) {
    return usage_error(
        fmt::format("{} takes the number of nodes and, if wanted, of bytes", options.operation));
  }
  std::uint64_t nodes = 0, bytes = 8;
  int exit_code = 0;
  if (!read_number(options.numbers[0], 1, m.pricing.nodes, "number of nodes", &nodes, &exit_code))
    return exit_code;
  if (options.numbers.size() == 2 &&
      !read_number(options.numbers[1], 0, std::uint64_t{1} << 40, "number of bytes", &bytes, &exit_code)) {
    return exit_code;
  }
  const auto q = model::quote_collective(m, which, static_cast<std::uint32_t>(nodes), bytes);
  const auto& d = m.description.collectives[static_cast<std::size_t>(which)];
  const std::vector<model::ExplainedCost> stages = model::explain_stages(m, which);
  std::string form = "the same for any number of nodes";
  if (d.by_operation) {
    form = fmt::format("{} rounds of {}", q.levels, model::op_name(d.op));
  } else if (!d.per_level.empty()) {
    form =
        fmt::format("{} levels of {}", q.levels, to_string(model::stages_total(m.description, d.per_level)));
  }
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"machine", m.description.name},
                                      {"collective", options.operation},
                                      {"nodes", nodes},
                                      {"bytes", bytes},
                                      {"ps", q.time.count()},
                                      {"form", form},
                                      {"stages", as_json(stages)},
                                      {"packets", q.rounds},
                                      {"lacks", d.lacks}}
                           .dump(2));
    return 0;
  }
  fmt::print("{}: {} among {} nodes: {}\n  {}", m.description.name, options.operation, nodes,
             to_string(q.time), form);
  if (q.rounds > 1) fmt::print(", {} packets one after the other", q.rounds);
  fmt::print("\n");
  for (const auto& c : stages) fmt::print("  {:>12}  {:<62} {}\n", to_string(c.time), c.what, c.source);
  if (d.after) fmt::print("  begins after {}\n", model::collective_name(*d.after));
  if (!d.lacks.empty()) fmt::print("  note: {}\n", d.lacks);
  return 0;
}

// Source, target and bytes that are given as options stand where they would stand as words. What is wrong, or
// "".
std::string place_numbers(ExplainOptions* options) {
  if (options->src.empty() && options->dst.empty() && options->bytes.empty()) return {};
  std::vector<std::string> all;
  std::size_t next = 0;
  for (const std::string* const given : {&options->src, &options->dst, &options->bytes}) {
    if (!given->empty()) {
      all.push_back(*given);
    } else if (next < options->numbers.size()) {
      all.push_back(options->numbers[next++]);
    }
  }
  if (next < options->numbers.size())
    return fmt::format("'{}' is one number too many: source, target or bytes are given by options",
                       options->numbers[next]);
  options->numbers = std::move(all);
  return {};
}

int explain(ExplainOptions options) {
  if (const std::string problem = place_numbers(&options); !problem.empty()) return usage_error(problem);
  std::string name = options.machine;
  for (const std::string& layer : options.layers) name += "+" + layer;
  const model::BuiltMachine built = model::build_machine(name);
  if (!built.machine) return usage_error(built.error);
  const model::Machine& m = *built.machine;
  std::optional<model::Op> op = model::op_by_name(options.operation);
  std::optional<model::Collective> which = model::collective_by_name(options.operation);
  if (const auto priced = model::priced_by_word(options.operation)) {
    if (const auto* const own = std::get_if<model::Op>(&*priced)) op = *own;
    if (const auto* const own = std::get_if<model::Collective>(&*priced)) which = *own;
  }
  if (which) return explain_collective(m, *which, options);
  if (!op && model::build_machine(options.operation).machine)
    return usage_error(
        fmt::format("'{0}' stands where an operation is expected: the machine is given by --machine {0}",
                    options.operation));
  if (!op)
    return usage_error(fmt::format(
        "operation '{}' is not known: expected one of {}, or an API's word as 'orrery machines --operations' "
        "lists them (gni.POST_AMO)",
        options.operation, operations()));
  if (options.numbers.size() != 3)
    return usage_error(options.operation + " takes source node, target node and bytes");
  std::uint64_t src = 0, dst = 0, bytes = 0;
  int exit_code = 0;
  if (!read_number(options.numbers[0], 0, m.pricing.nodes - 1, options.machine + ": source node", &src,
                   &exit_code) ||
      !read_number(options.numbers[1], 0, m.pricing.nodes - 1, options.machine + ": target node", &dst,
                   &exit_code) ||
      !read_number(options.numbers[2], 0, std::uint64_t{1} << 40, "number of bytes", &bytes, &exit_code)) {
    return exit_code;
  }
  model::QuoteRequest request{.op = *op,
                              .src = static_cast<model::NodeId>(src),
                              .dst = static_cast<model::NodeId>(dst),
                              .bytes = bytes};
  if (!model::routing_by_name(options.routing, &request.routing)) {
    std::string names;
    for (int i = 0; i < model::kRoutings; ++i) {
      names += fmt::format("{}{}", i == 0 ? "" : ", ", model::routing_name(static_cast<model::Routing>(i)));
    }
    return usage_error(fmt::format("routing '{}' is not known: expected {}", options.routing, names));
  }
  const model::Explanation e = model::explain(m, request);
  const std::string routing_effect(model::routing_effect(m.pricing.network, request.routing));
  if (options.json) {
    nlohmann::json route = nlohmann::json::array();
    for (const auto& h : e.route)
      route.push_back({{"from", h.from}, {"by", h.by}, {"to", h.to}, {"link", h.link}});
    fmt::print("{}\n", nlohmann::json{{"machine", m.description.name},
                                      {"operation", model::op_name(*op)},
                                      {"source", model::place_of(m.pricing, request.src)},
                                      {"target", model::place_of(m.pricing, request.dst)},
                                      {"bytes", bytes},
                                      {"routing", model::routing_name(request.routing)},
                                      {"routing_effect", routing_effect},
                                      {"layers", m.description.applied},
                                      {"lacks", e.lacks},
                                      {"route", route},
                                      {"to_data", as_json(e.to_data)},
                                      {"at_target", as_json(e.at_target)},
                                      {"to_local_event", as_json(e.to_local)},
                                      {"cpu_busy_ps", e.quote.cpu_busy.count()},
                                      {"data_at_ps", e.quote.data_at.count()},
                                      {"remote_event_at_ps", e.quote.remote_event_at.count()},
                                      {"local_event_at_ps", e.quote.local_event_at.count()}}
                           .dump(2));
    return 0;
  }
  fmt::print("{}: {} of {} B from node {} [{}] to node {} [{}]\n", m.description.title, model::op_name(*op),
             bytes, src, model::place_of(m.pricing, request.src), dst,
             model::place_of(m.pricing, request.dst));
  if (!e.lacks.empty()) fmt::print("note: {}\n", e.lacks);
  for (const std::string& layer : m.description.applied)
    fmt::print("layer {}: {}\n", layer, m.description.layers.at(layer).what);
  fmt::print("routing {}: {}\n", model::routing_name(request.routing), routing_effect);
  fmt::print("route of the data, {} links:\n", e.route.size());
  for (std::size_t i = 0; i < e.route.size(); ++i) {
    fmt::print("  {:>3}  {} --{}--> {}\n", i + 1, e.route[i].from, e.route[i].by, e.route[i].to);
  }
  fmt::print("data visible (cost, sum, what, source):\n");
  print_costs(e.to_data, Picos{});
  fmt::print("event at the target:\n");
  print_costs(e.at_target, e.target_from);
  fmt::print("event at the source:\n");
  print_costs(e.to_local, e.local_from);
  fmt::print("processor busy {}, data at {}, target's event at {}, source's event at {}\n",
             to_string(e.quote.cpu_busy), to_string(e.quote.data_at), to_string(e.quote.remote_event_at),
             to_string(e.quote.local_event_at));
  return 0;
}

}  // namespace

void add_explain(CLI::App& root, int& exit_code) {
  auto options = std::make_shared<ExplainOptions>();
  auto* command = root.add_subcommand("explain", "What an operation costs on a machine, item by item");
  command->add_option("--machine", options->machine, "A machine's name or file")->capture_default_str();
  command->add_option("--layer", options->layers, "Software above the NIC to add, by name: mpi")
      ->allow_extra_args(false);
  command->add_option("--routing", options->routing, "Routing mode")->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command
      ->add_option("operation,--operation", options->operation,
                   "put, get, amo, ..., a collective, or an API's word (gni.POST_AMO)")
      ->required();
  command->add_option("numbers", options->numbers,
                      "source node, target node, bytes; a collective: nodes [bytes]");
  command->add_option("--src", options->src, "Source node");
  command->add_option("--dst", options->dst, "Target node");
  command->add_option("--bytes", options->bytes, "Bytes");
  command->callback([options, &exit_code] { exit_code = explain(*options); });
}

}  // namespace orrery::tool
