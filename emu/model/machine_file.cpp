// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/machine_file.hpp"

#include "emu/base/units.hpp"
#include "emu/model/machine_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace orrery::model {

bool Loader::machine(const toml::table& root) {
  for (const auto& [key, node] : root) {
    const std::string_view k = key.str();
    if (k == "schema" || k == "name" || k == "title" || k == "paper") continue;
    if (std::find(std::begin(kSections), std::end(kSections), k) == std::end(kSections)) {
      return fail(k, "",
                  "unknown key; accepted are schema, name, title, paper and the sections topology, link, "
                  "packet, host, nic, stage, limit, count, share, operation, collective, layer");
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
         named_section(root, "share", fraction) && operations(root) && collectives(root) && layers(root);
}

bool Loader::network(const toml::table& root) {
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

bool Loader::value_of(const toml::node* node, const std::string& key, ConstantKind kind, std::int64_t low,
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
      if (!number(parsed, fmt::format("{}, or cycles of the NIC's clock (\"2 cycles\")", kDurationAccepts))) {
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
      if (!f || !(*f >= 1e-6) || *f > 1) return fail(key, shown(node), "expected a fraction, 0.000001 to 1");
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

bool Loader::constant(const toml::node& node, const std::string& key, ConstantKind kind, std::int64_t low,
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
    if (name != "value" && name != "source" && name != "fitted" && name != "rows" && name != "error") {
      return fail(fmt::format("{}.{}", key, name), "",
                  "unknown key; accepted are value, source, fitted, rows, error");
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
  if (const toml::node* error = table->get("error")) {
    const auto share = error->is_string() ? std::nullopt : error->value<double>();
    if (!share || !(*share >= 0) || *share > 10)
      return fail(key + ".error", shown(error), "expected a share of the value, 0 to 10");
    c.error = static_cast<std::int64_t>(*share * 1e6 + 0.5);
  }
  if (c.source.empty() && !c.fitted) {
    return fail(key, shown(table->get("value")),
                "source is missing: expected source = \"paper and place\" or "
                "fitted = [\"row\"]");
  }
  out_.constants.insert_or_assign(key, std::move(c));
  return true;
}

bool Loader::row_ids(const toml::node* node, const std::string& key, std::vector<std::string>* out) {
  std::vector<std::string> ids;
  if (!texts(node, key, "row names such as \"AR063\"", &ids)) return false;
  if (ids.empty()) return fail(key, "[]", "expected at least one row name such as \"AR063\"");
  for (const std::string& id : ids) {
    const bool good = id.size() >= 5 && id.size() <= 6 &&
                      std::all_of(id.begin(), id.begin() + 2, [](char c) { return c >= 'A' && c <= 'Z'; }) &&
                      std::all_of(id.end() - 3, id.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!good) return fail(key, fmt::format("\"{}\"", id), "expected a row name such as \"AR063\"");
    out->push_back(id);
  }
  return true;
}

bool Loader::fixed_sections(const toml::table& root) {
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

std::string Loader::unknown_key(std::string_view section, unsigned me) {
  std::string accepted = section == "topology" ? "kind" : "";
  for (const KeyRule& rule : kRules) {
    if (rule.section != section || ((rule.required | rule.optional) & me) == 0) continue;
    accepted += (accepted.empty() ? "" : ", ") + std::string(rule.key);
  }
  return "unknown key; accepted are " + accepted;
}

bool Loader::named_section(const toml::table& root, std::string_view section, ConstantKind kind) {
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

namespace {

// Each part of a dotted key is a table inside the one before, and toml++ takes them apart by recursion: a
// key of 200,000 parts takes the whole stack. Counted are the dots of a line that are in no number and in
// no comment; values nest 256 deep at most.
constexpr int kMostDots = 16;

bool is_in_number(std::string_view text, std::size_t dot) {
  std::size_t first = dot;
  while (first > 0 && text[first - 1] >= '0' && text[first - 1] <= '9') --first;
  std::size_t last = dot + 1;
  while (last < text.size() && text[last] >= '0' && text[last] <= '9') ++last;
  return first < dot && last > dot + 1 && (last == text.size() || text[last] != '.') &&
         (first == 0 || std::string_view(" \t=,[+-").find(text[first - 1]) != std::string_view::npos);
}

// The first line with more than kMostDots; 0: none.
std::size_t line_of_long_key(std::string_view text) {
  std::size_t line = 1;
  int dots = 0;
  bool quoted = false;
  bool comment = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      dots = 0;
      quoted = comment = false;
    } else if (c == '"' || c == '\'') {
      quoted = true;
    } else if (c == '#' && !quoted) {
      comment = true;
    } else if (c == '.' && !comment && !is_in_number(text, i) && ++dots > kMostDots) {
      return line;
    }
  }
  return 0;
}

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
  if (const std::size_t line = line_of_long_key(text); line != 0) {
    result.error =
        fmt::format("{}: line {}: more than {} dots in a line are not accepted", file, line, kMostDots);
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
