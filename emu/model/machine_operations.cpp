// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/machine_loader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery::model {

bool Loader::stages(const toml::node* node, const std::string& key, std::vector<std::string>* out) {
  std::vector<std::string> names;
  if (!texts(node, key, "stage names", &names)) return false;
  for (const std::string& name : names) {
    if (!known(key, "stage", name)) return false;
    out->push_back("stage." + name);
  }
  return true;
}

bool Loader::known(const std::string& key, std::string_view section, const std::string& name) {
  if (out_.find(dotted(section, name)) != nullptr) return true;
  return fail(key, fmt::format("\"{}\"", name), fmt::format("expected a name of section [{}]", section));
}

bool Loader::reference(const toml::table& table, std::string_view section, const std::string& key,
                       std::string* out) {
  const std::string_view last = std::string_view(key).substr(key.rfind('.') + 1);
  const toml::node* node = table.get(last);
  if (node == nullptr) return true;
  const auto* s = node->as_string();
  if (s == nullptr) return fail(key, shown(node), fmt::format("expected a name of section [{}]", section));
  if (!known(key, section, s->get())) return false;
  *out = dotted(section, s->get());
  return true;
}

bool Loader::operations(const toml::table& root) {
  const auto* all = root["operation"].as_table();
  if (all == nullptr) return fail("operation", "", "this section is missing");
  for (const auto& [k, node] : *all) {
    const auto op = op_by_name(k.str());
    if (op && op_name(*op) == k.str()) continue;
    std::vector<std::string_view> names;
    for (int i = 0; i < kOps; ++i) names.push_back(op_name(static_cast<Op>(i)));
    return fail(dotted("operation", k.str()), "",
                fmt::format("unknown operation; accepted are {}", fmt::join(names, ", ")));
  }
  for (int i = 0; i < kOps; ++i) {
    const auto op = static_cast<Op>(i);
    const std::string key = dotted("operation", op_name(op));
    const auto* table = (*all)[op_name(op)].as_table();
    if (table == nullptr) {
      return fail(key, "",
                  "this operation is missing; where the machine has none, say `lacks` and how it is "
                  "priced");
    }
    if (!operation(*table, key, &out_.ops[static_cast<std::size_t>(i)])) return false;
  }
  return copies();
}

bool Loader::operation(const toml::table& table, const std::string& key, OpDescription* out) {
  out->present = true;
  for (const auto& [k, node] : table) {
    const std::string_view name = k.str();
    const std::string at = dotted(key, name);
    int part = 0;
    while (part < kParts && part_name(static_cast<Part>(part)) != name) ++part;
    if (part < kParts) {
      if (!stages(&node, at, &out->parts[static_cast<std::size_t>(part)])) return false;
    } else if (name == "lacks") {
      if (!text(table, "lacks", key, &out->lacks)) return false;
    } else if (name == "like") {
      if (!text(table, "like", key, &out->like)) return false;
    } else if (name == "flow") {
      const auto flow = flow_by_name(node.value<std::string>().value_or(""));
      if (!flow) return fail(at, shown(&node), "expected put, get or posted");
      out->flow = *flow;
    } else if (name == "host") {
      const std::string use = node.value<std::string>().value_or("");
      if (use != "interface" && use != "both_ways" && use != "none")
        return fail(at, shown(&node), "expected interface, both_ways or none");
      out->host = use == "none"        ? HostUse::none
                  : use == "both_ways" ? HostUse::both_ways
                                       : HostUse::interface;
    } else if (name == "inline_limit") {
      if (!reference(table, "limit", at, &out->inline_limit)) return false;
    } else if (name == "store") {
      if (!reference(table, "stage", at, &out->store)) return false;
    } else if (name == "knee") {
      if (!reference(table, "limit", at, &out->knee)) return false;
    } else if (name == "below") {
      if (!reference(table, "stage", at, &out->below)) return false;
    } else if (name == "above") {
      if (!reference(table, "stage", at, &out->above)) return false;
    } else {
      return fail(
          at, "",
          "unknown key; accepted are flow, host, lacks, like, inline_limit, store, knee, below, above, "
          "cpu, out, in, turn, back, remote_event, local_event, serve, serial, gap, gap_add, beyond, "
          "beyond_gap");
    }
  }
  const int curve = !out->knee.empty() + !out->below.empty() + !out->above.empty();
  if (curve != 0 && curve != 3) return fail(key, "", "knee, below and above come together");
  return true;
}

bool Loader::copies() {
  for (int i = 0; i < kOps; ++i) {
    OpDescription& op = out_.ops[static_cast<std::size_t>(i)];
    if (op.like.empty()) continue;
    const std::string key = dotted("operation", op_name(static_cast<Op>(i))) + ".like";
    const auto other = op_by_name(op.like);
    if (!other || op_name(*other) != op.like)
      return fail(key, fmt::format("\"{}\"", op.like), "expected an operation");
    const OpDescription& from = out_.ops[static_cast<std::size_t>(*other)];
    if (!from.like.empty()) {
      return fail(key, fmt::format("\"{}\"", op.like), "expected an operation that is not itself a copy");
    }
    OpDescription copy = from;
    copy.like = op.like;
    copy.lacks = op.lacks;
    op = std::move(copy);
  }
  return true;
}

bool Loader::collectives(const toml::table& root) {
  const auto* all = root["collective"].as_table();
  if (all == nullptr) return fail("collective", "", "this section is missing");
  for (const auto& [k, node] : *all) {
    if (collective_by_name(k.str())) continue;
    std::vector<std::string_view> names;
    for (int i = 0; i < kCollectives; ++i) names.push_back(collective_name(static_cast<Collective>(i)));
    return fail(dotted("collective", k.str()), "",
                fmt::format("unknown collective; accepted are {}", fmt::join(names, ", ")));
  }
  for (int i = 0; i < kCollectives; ++i) {
    const auto name = collective_name(static_cast<Collective>(i));
    const std::string key = dotted("collective", name);
    const auto* table = (*all)[name].as_table();
    if (table == nullptr) return fail(key, "", "this collective is missing");
    if (!collective(*table, key, &out_.collectives[static_cast<std::size_t>(i)])) return false;
  }
  return true;
}

bool Loader::collective(const toml::table& table, const std::string& key, CollectiveDescription* out) {
  out->present = true;
  for (const auto& [k, node] : table) {
    const std::string_view name = k.str();
    const std::string at = dotted(key, name);
    bool good = true;
    if (name == "lacks") {
      good = text(table, "lacks", key, &out->lacks);
    } else if (name == "op") {
      const auto op = op_by_name(node.value<std::string>().value_or(""));
      if (!op) return fail(at, shown(&node), "expected an operation");
      out->by_operation = true;
      out->op = *op;
    } else if (name == "base") {
      good = stages(&node, at, &out->base);
    } else if (name == "per_level") {
      good = stages(&node, at, &out->per_level);
    } else if (name == "once") {
      good = stages(&node, at, &out->once);
    } else if (name == "after") {
      out->after = collective_by_name(node.value<std::string>().value_or(""));
      if (!out->after || collective_name(*out->after) == key.substr(key.rfind('.') + 1))
        return fail(at, shown(&node), "expected another collective");
    } else if (name == "radix") {
      good = constant(node, at, count, 2, 1024);
    } else if (name == "from_level") {
      good = constant(node, at, count, 0, 32);
    } else if (name == "passes") {
      good = constant(node, at, count, 1, 16);
    } else {
      return fail(
          at, "",
          "unknown key; accepted are lacks, op, base, per_level, once, after, radix, from_level, passes");
    }
    if (!good) return false;
  }
  if (out_.find(key + ".radix") == nullptr) return fail(key + ".radix", "", "this key is missing");
  return true;
}

bool Loader::layers(const toml::table& root) {
  const toml::node* section = root.get("layer");
  if (section == nullptr) return true;
  const auto* all = section->as_table();
  if (all == nullptr) return fail("layer", shown(section), "expected a table");
  for (const auto& [k, node] : *all) {
    const std::string key = dotted("layer", k.str());
    const auto* table = node.as_table();
    if (table == nullptr) return fail(key, shown(&node), "expected a table");
    LayerDescription layer;
    for (const auto& [part, value] : *table) {
      const std::string at = dotted(key, part.str());
      if (part == "what") {
        if (!text(*table, "what", key, &layer.what)) return false;
      } else if (part == "cpu") {
        if (!stages(&value, at, &layer.cpu)) return false;
      } else if (part == "in") {
        if (!stages(&value, at, &layer.in)) return false;
      } else if (part == "operations") {
        std::vector<std::string> names;
        if (!texts(&value, at, "operations", &names)) return false;
        for (const std::string& name : names) {
          const auto op = op_by_name(name);
          if (!op) return fail(at, fmt::format("\"{}\"", name), "expected operations");
          layer.ops.push_back(*op);
        }
      } else {
        return fail(at, "", "unknown key; accepted are what, operations, cpu, in");
      }
    }
    if (layer.what.empty()) return fail(key + ".what", "", "this key is missing");
    if (layer.ops.empty()) return fail(key + ".operations", "", "this key is missing");
    out_.layers.emplace(std::string(k.str()), std::move(layer));
  }
  return true;
}

}  // namespace orrery::model
