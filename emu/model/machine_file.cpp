// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/machine_file.hpp"

#include "emu/base/units.hpp"
#include "emu/model/machine_keys.hpp"
#include "emu/model/toml_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace orrery::model {

namespace {

class Loader {
 public:
  Loader(std::string_view file, Description* out) : file_(file), out_(*out) {}
  const std::string& error() const { return error_; }

  bool machine(const toml::table& root) {
    for (const auto& [key, node] : root) {
      const std::string_view k = key.str();
      if (k == "schema" || k == "name" || k == "title" || k == "paper") continue;
      if (std::find(std::begin(kSections), std::end(kSections), k) == std::end(kSections)) {
        return fail(k, "",
                    "unknown key; accepted are schema, name, title, paper and the sections topology, link, "
                    "packet, host, nic, stage, limit, count, share, operation, collective");
      }
    }
    const auto schema = root["schema"].value<std::int64_t>();
    if (!schema || *schema != 1) return fail("schema", shown(root.get("schema")), "expected 1");
    if (!text(root, "name", "", &out_.name) || !text(root, "title", "", &out_.title) ||
        !text(root, "paper", "", &out_.paper)) {
      return false;
    }
    return network(root) && fixed_sections(root) && named_section(root, "stage", duration) &&
           named_section(root, "limit", bytes) && named_section(root, "count", count) &&
           named_section(root, "share", fraction) && operations(root) && collectives(root);
  }

 private:
  bool fail(std::string_view key, std::string_view value, std::string_view accepted) {
    if (!error_.empty()) return false;
    error_ = value.empty() ? fmt::format("{}: {}: {}", file_, key, accepted)
                           : fmt::format("{}: {} = {}: {}", file_, key, value, accepted);
    for (char& c : error_) {
      if (static_cast<unsigned char>(c) < ' ' || c == 127) c = ' ';
    }
    return false;
  }

  static std::string shown(const toml::node* node) {
    if (node == nullptr) return "(missing)";
    if (const auto s = node->value<std::string>(); s && node->is_string()) return fmt::format("\"{}\"", *s);
    if (const auto* b = node->as_boolean()) return b->get() ? "true" : "false";
    if (const auto* i = node->as_integer()) return fmt::format("{}", i->get());
    if (const auto* f = node->as_floating_point()) return fmt::format("{}", f->get());
    return node->is_table() ? "(a table)" : node->is_array() ? "(an array)" : "(a value of another type)";
  }

  static std::string dotted(std::string_view section, std::string_view key) {
    return section.empty() ? std::string(key) : fmt::format("{}.{}", section, key);
  }

  bool text(const toml::table& table, std::string_view key, std::string_view section, std::string* out) {
    const toml::node* node = table.get(key);
    const auto* s = node == nullptr ? nullptr : node->as_string();
    if (s == nullptr || s->get().empty()) return fail(dotted(section, key), shown(node), "expected a text");
    *out = s->get();
    return true;
  }

  bool texts(const toml::node* node, const std::string& key, std::string_view what,
             std::vector<std::string>* out) {
    const auto* array = node->as_array();
    if (array == nullptr) return fail(key, shown(node), fmt::format("expected an array of {}", what));
    for (const auto& element : *array) {
      const auto* s = element.as_string();
      if (s == nullptr || s->get().empty()) {
        return fail(key, shown(&element), fmt::format("expected an array of {}", what));
      }
      out->push_back(s->get());
    }
    return true;
  }

  bool network(const toml::table& root) {
    const auto* topology = root["topology"].as_table();
    if (topology == nullptr) return fail("topology", "", "this section is missing");
    static constexpr std::pair<std::string_view, Network> kNames[] = {
        {"dragonfly", Network::dragonfly},         {"gemini_torus", Network::gemini_torus},
        {"seastar_torus", Network::seastar_torus}, {"bluegene_torus", Network::bluegene_torus},
        {"fat_tree", Network::fat_tree},           {"crossbar", Network::crossbar}};
    const auto kind = (*topology)["kind"].value<std::string>();
    for (const auto& [name, network] : kNames) {
      if (kind && *kind == name) {
        out_.network = network;
        return true;
      }
    }
    return fail("topology.kind", shown(topology->get("kind")),
                "expected dragonfly, gemini_torus, seastar_torus, bluegene_torus, fat_tree or crossbar");
  }

  bool value_of(const toml::node* node, const std::string& key, ConstantKind kind, std::int64_t low,
                std::int64_t high, Constant* out) {
    const auto number = [&](auto parsed, std::string_view accepts) {
      if (!parsed.ok()) return fail(key, shown(node), fmt::format("expected {}", accepts));
      return true;
    };
    const auto* s = node == nullptr ? nullptr : node->as_string();
    out->kind = kind;
    switch (kind) {
      case duration:
      case cycles: {
        if (s == nullptr) return fail(key, shown(node), fmt::format("expected {}", kDurationAccepts));
        const std::string& t = s->get();
        if (t.size() > 7 && t.ends_with(" cycles")) {
          double n = 0;
          const char* last = t.data() + t.size() - 7;
          const auto [end, bad] = std::from_chars(t.data(), last, n, std::chars_format::fixed);
          if (bad == std::errc{} && end == last && n >= 0 && n <= 1e6) {
            out->kind = cycles;
            out->value = static_cast<std::int64_t>(n * 1e3 + 0.5);
            return true;
          }
        }
        const auto parsed = parse_duration(t);
        if (!number(parsed,
                    fmt::format("{}, or cycles of the NIC's clock (\"2 cycles\")", kDurationAccepts))) {
          return false;
        }
        out->value = parsed.value().count();
        break;
      }
      case rate: {
        if (s != nullptr && s->get() == "unlimited") {
          if (low > 0) return fail(key, shown(node), fmt::format("expected {}", kRateAccepts));
          out->value = 0;
          return true;
        }
        const auto parsed = parse_rate(s == nullptr ? std::string_view{} : std::string_view{s->get()});
        if (!number(parsed, fmt::format("{} or \"unlimited\"", kRateAccepts))) return false;
        out->value = static_cast<std::int64_t>(parsed.value().bytes_per_second());
        if (out->value < 1000) return fail(key, shown(node), "expected at least 1 kB/s");
        return true;
      }
      case bytes: {
        const auto parsed = parse_bytes(s == nullptr ? std::string_view{} : std::string_view{s->get()});
        if (!number(parsed, kBytesAccepts)) return false;
        out->value = static_cast<std::int64_t>(parsed.value().count());
        break;
      }
      case clock: {
        const auto parsed = parse_hertz(s == nullptr ? std::string_view{} : std::string_view{s->get()});
        if (!number(parsed, kHertzAccepts)) return false;
        out->value = static_cast<std::int64_t>(parsed.value().count());
        break;
      }
      case count: {
        const auto* i = node == nullptr ? nullptr : node->as_integer();
        if (i == nullptr)
          return fail(key, shown(node), fmt::format("expected a whole number {}..{}", low, high));
        out->value = i->get();
        break;
      }
      case fraction: {
        const auto f = node == nullptr || node->is_string() ? std::nullopt : node->value<double>();
        if (!f || !(*f > 0) || *f > 1) return fail(key, shown(node), "expected a fraction above 0, up to 1");
        out->value = static_cast<std::int64_t>(*f * 1e6 + 0.5);
        return true;
      }
      case flag: {
        const auto* b = node == nullptr ? nullptr : node->as_boolean();
        if (b == nullptr) return fail(key, shown(node), "expected true or false");
        out->value = b->get() ? 1 : 0;
        return true;
      }
    }
    if (out->value < low || out->value > high) {
      Constant least = *out, most = *out;
      least.value = low;
      most.value = high;
      return fail(key, shown(node),
                  high == kAny ? fmt::format("expected {} or more", constant_text(least))
                               : fmt::format("expected {} .. {}", constant_text(least), constant_text(most)));
    }
    return true;
  }

  // { value = ..., source = "..." } or { value = ..., fitted = ["AR063"] }, optionally with rows = [...].
  bool constant(const toml::node& node, const std::string& key, ConstantKind kind, std::int64_t low,
                std::int64_t high) {
    const auto* table = node.as_table();
    if (table == nullptr) {
      return fail(key, shown(&node),
                  "expected { value = ..., source = \"paper and place\" } or { value = ..., "
                  "fitted = [\"row\"] }");
    }
    Constant c;
    for (const auto& [k, part] : *table) {
      const std::string_view name = k.str();
      if (name != "value" && name != "source" && name != "fitted" && name != "rows") {
        return fail(fmt::format("{}.{}", key, name), "",
                    "unknown key; accepted are value, source, fitted, rows");
      }
    }
    if (!value_of(table->get("value"), key, kind, low, high, &c)) return false;
    if (const toml::node* source = table->get("source")) {
      const auto* s = source->as_string();
      if (s == nullptr || s->get().empty()) return fail(key + ".source", shown(source), "expected a text");
      c.source = s->get();
    }
    if (const toml::node* rows = table->get("rows");
        rows != nullptr && !row_ids(rows, key + ".rows", &c.rows)) {
      return false;
    }
    if (const toml::node* fitted = table->get("fitted")) {
      c.fitted = true;
      if (!row_ids(fitted, key + ".fitted", &c.rows)) return false;
    }
    if (c.source.empty() && !c.fitted) {
      return fail(key, shown(table->get("value")),
                  "source is missing: expected source = \"paper and place\" or "
                  "fitted = [\"row\"]");
    }
    out_.constants.insert_or_assign(key, std::move(c));
    return true;
  }

  bool row_ids(const toml::node* node, const std::string& key, std::vector<std::string>* out) {
    std::vector<std::string> ids;
    if (!texts(node, key, "row names such as \"AR063\"", &ids)) return false;
    if (ids.empty()) return fail(key, "[]", "expected at least one row name such as \"AR063\"");
    for (const std::string& id : ids) {
      const bool good =
          id.size() >= 5 && id.size() <= 6 &&
          std::all_of(id.begin(), id.begin() + 2, [](char c) { return c >= 'A' && c <= 'Z'; }) &&
          std::all_of(id.end() - 3, id.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (!good) return fail(key, fmt::format("\"{}\"", id), "expected a row name such as \"AR063\"");
      out->push_back(id);
    }
    return true;
  }

  bool fixed_sections(const toml::table& root) {
    const unsigned me = mask_of(out_.network);
    for (const std::string_view section : {"topology", "link", "packet", "host", "nic"}) {
      const auto* table = root[section].as_table();
      if (table == nullptr) return fail(section, "", "this section is missing");
      for (const auto& [k, node] : *table) {
        const std::string_view name = k.str();
        if (section == "topology" && name == "kind") continue;
        const KeyRule* rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const KeyRule& r) {
          return r.section == section && r.key == name && ((r.required | r.optional) & me) != 0;
        });
        if (rule == std::end(kRules)) return fail(dotted(section, name), "", unknown_key(section, me));
        if (!constant(node, dotted(section, name), rule->kind, rule->low, rule->high)) return false;
      }
      for (const KeyRule& rule : kRules) {
        if (rule.section == section && (rule.required & me) != 0 && !table->contains(rule.key)) {
          return fail(dotted(section, rule.key), "", "this key is missing");
        }
      }
    }
    return true;
  }

  static std::string unknown_key(std::string_view section, unsigned me) {
    std::string accepted = section == "topology" ? "kind" : "";
    for (const KeyRule& rule : kRules) {
      if (rule.section != section || ((rule.required | rule.optional) & me) == 0) continue;
      accepted += (accepted.empty() ? "" : ", ") + std::string(rule.key);
    }
    return "unknown key; accepted are " + accepted;
  }

  bool named_section(const toml::table& root, std::string_view section, ConstantKind kind) {
    const toml::node* node = root.get(section);
    if (node == nullptr) return true;
    const auto* table = node->as_table();
    if (table == nullptr) return fail(section, shown(node), "expected a table");
    const std::int64_t high = kind == duration ? 1'000'000'000'000 : std::int64_t{1} << 30;
    for (const auto& [k, value] : *table) {
      if (!constant(value, dotted(section, k.str()), kind, 0, high)) return false;
    }
    return true;
  }

  bool stages(const toml::node* node, const std::string& key, std::vector<std::string>* out) {
    std::vector<std::string> names;
    if (!texts(node, key, "stage names", &names)) return false;
    for (const std::string& name : names) {
      if (!known(key, "stage", name)) return false;
      out->push_back("stage." + name);
    }
    return true;
  }

  bool known(const std::string& key, std::string_view section, const std::string& name) {
    if (out_.find(dotted(section, name)) != nullptr) return true;
    return fail(key, fmt::format("\"{}\"", name), fmt::format("expected a name of section [{}]", section));
  }

  bool reference(const toml::table& table, std::string_view section, const std::string& key,
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

  bool operations(const toml::table& root) {
    const auto* all = root["operation"].as_table();
    if (all == nullptr) return fail("operation", "", "this section is missing");
    for (const auto& [k, node] : *all) {
      const auto op = op_by_name(k.str());
      if (!op || op_name(*op) != k.str()) return fail(dotted("operation", k.str()), "", "unknown operation");
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

  bool operation(const toml::table& table, const std::string& key, OpDescription* out) {
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
        if (use != "interface" && use != "none") return fail(at, shown(&node), "expected interface or none");
        out->host = use == "none" ? HostUse::none : HostUse::interface;
      } else if (name == "inline_limit") {
        if (!reference(table, "limit", at, &out->inline_limit)) return false;
      } else if (name == "knee") {
        if (!reference(table, "limit", at, &out->knee)) return false;
      } else if (name == "below") {
        if (!reference(table, "stage", at, &out->below)) return false;
      } else if (name == "above") {
        if (!reference(table, "stage", at, &out->above)) return false;
      } else {
        return fail(
            at, "",
            "unknown key; accepted are flow, host, lacks, like, inline_limit, knee, below, above, "
            "cpu, out, in, turn, back, remote_event, local_event, serve, gap, gap_add, beyond, beyond_gap");
      }
    }
    const int curve = !out->knee.empty() + !out->below.empty() + !out->above.empty();
    if (curve != 0 && curve != 3) return fail(key, "", "knee, below and above come together");
    return true;
  }

  bool copies() {
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

  bool collectives(const toml::table& root) {
    const auto* all = root["collective"].as_table();
    if (all == nullptr) return fail("collective", "", "this section is missing");
    for (const auto& [k, node] : *all) {
      if (!collective_by_name(k.str())) return fail(dotted("collective", k.str()), "", "unknown collective");
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

  bool collective(const toml::table& table, const std::string& key, CollectiveDescription* out) {
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
      } else if (name == "radix") {
        good = constant(node, at, count, 2, 1024);
      } else if (name == "from_level") {
        good = constant(node, at, count, 0, 32);
      } else if (name == "passes") {
        good = constant(node, at, count, 1, 16);
      } else {
        return fail(at, "",
                    "unknown key; accepted are lacks, op, base, per_level, once, radix, from_level, passes");
      }
      if (!good) return false;
    }
    if (out_.find(key + ".radix") == nullptr) return fail(key + ".radix", "", "this key is missing");
    return true;
  }

  std::string_view file_;
  Description& out_;
  std::string error_;
};

}  // namespace

MachineFile parse_machine(std::string_view text, std::string_view file) {
  // As editors of other systems begin a file: TOML is UTF-8 anyway.
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  MachineFile result;
  // toml++ 3.3.0 promises the compiler that some characters beyond ASCII never come, and then they do.
  const auto foreign =
      std::find_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) > 127; });
  if (foreign != text.end()) {
    result.error =
        fmt::format("{}: line {}: byte {:#04x} is not accepted: expected ASCII", file,
                    1 + std::count(text.begin(), foreign, '\n'), static_cast<unsigned char>(*foreign));
    return result;
  }
  const toml::parse_result parsed = toml::parse(text, file);
  if (!parsed) {
    const auto& where = parsed.error().source().begin;
    result.error = fmt::format("{}: line {}, column {}: {}", file, where.line, where.column,
                               parsed.error().description());
    for (char& c : result.error) {
      if (static_cast<unsigned char>(c) < ' ' || c == 127) c = ' ';
    }
    return result;
  }
  Description description;
  description.file = file;
  Loader loader(file, &description);
  if (loader.machine(parsed.table())) {
    result.description = std::move(description);
  } else {
    result.error = loader.error();
  }
  return result;
}

}  // namespace orrery::model
