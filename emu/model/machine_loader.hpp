// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Turns a parsed machine file into a description, section by section; the first thing that is wrong ends it.
// Part of machine_file.cpp (fixed sections, constants) and machine_operations.cpp (what is put together from
// them), which define its members.
#pragma once

#include "emu/model/description.hpp"
#include "emu/model/machine_keys.hpp"
#include "emu/model/toml_parser.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace orrery::model {

class Loader {
 public:
  Loader(std::string_view file, Description* out) : file_(file), out_(*out) {}
  const std::string& error() const { return error_; }
  bool machine(const toml::table& root);

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

  bool network(const toml::table& root);
  bool value_of(const toml::node* node, const std::string& key, ConstantKind kind, std::int64_t low,
                std::int64_t high, Constant* out);
  // { value = ..., source = "..." } or { value = ..., fitted = ["AR063"] }, optionally with rows = [...].
  bool constant(const toml::node& node, const std::string& key, ConstantKind kind, std::int64_t low,
                std::int64_t high);
  bool row_ids(const toml::node* node, const std::string& key, std::vector<std::string>* out);
  bool fixed_sections(const toml::table& root);
  static std::string unknown_key(std::string_view section, unsigned me);
  bool named_section(const toml::table& root, std::string_view section, ConstantKind kind);
  bool stages(const toml::node* node, const std::string& key, std::vector<std::string>* out);
  bool known(const std::string& key, std::string_view section, const std::string& name);
  bool reference(const toml::table& table, std::string_view section, const std::string& key,
                 std::string* out);
  bool operations(const toml::table& root);
  bool operation(const toml::table& table, const std::string& key, OpDescription* out);
  bool copies();
  bool collectives(const toml::table& root);
  bool collective(const toml::table& table, const std::string& key, CollectiveDescription* out);
  bool layers(const toml::table& root);

  std::string_view file_;
  Description& out_;
  std::string error_;
};

}  // namespace orrery::model
