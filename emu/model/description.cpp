// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/description.hpp"

#include "emu/base/units.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::model {

namespace {

struct PartWords {
  std::string_view name, meaning;
};
constexpr std::array<PartWords, kParts> kPartWords{{
    {"cpu", "processor busy"},
    {"out", "to the network"},
    {"in", "from the network to memory"},
    {"turn", "at the target, before the response"},
    {"back", "at the source, after the response"},
    {"remote_event", "event at the target"},
    {"local_event", "event at the source"},
    {"serve", "target's unit busy"},
    {"serial", "block engine busy"},
    {"gap", "shortest interval"},
    {"gap_add", "added interval"},
    {"beyond", "past the inline limit"},
    {"beyond_gap", "interval past the inline limit"},
}};

}  // namespace

std::string_view part_name(Part part) { return kPartWords[static_cast<std::size_t>(part)].name; }
std::string_view part_meaning(Part part) { return kPartWords[static_cast<std::size_t>(part)].meaning; }

std::string constant_text(const Constant& c) {
  switch (c.kind) {
    case ConstantKind::duration:
      return to_string(Picos{c.value});
    case ConstantKind::cycles:
      return fmt::format("{} cycles", static_cast<double>(c.value) / 1e3);
    case ConstantKind::rate:
      return to_string(Rate::from_bytes_per_second(static_cast<std::uint64_t>(c.value)));
    case ConstantKind::bytes:
      return to_string(Bytes{static_cast<std::uint64_t>(c.value)});
    case ConstantKind::clock:
      return to_string(Hertz{static_cast<std::uint64_t>(c.value)});
    case ConstantKind::count:
      return fmt::format("{}", c.value);
    case ConstantKind::fraction:
      return fmt::format("{}", static_cast<double>(c.value) / 1e6);
    case ConstantKind::flag:
      return c.value != 0 ? "true" : "false";
  }
  return "?";
}

std::string error_text(const Constant& c) {
  if (c.error < 0) return "error not known";
  return c.error == 0 ? "exact" : fmt::format("+-{:g} %", static_cast<double>(c.error) / 1e4);
}

std::string add_layer(Description* d, std::string_view name) {
  const auto found = d->layers.find(std::string(name));
  if (found == d->layers.end()) {
    std::string names;
    for (const auto& [known, layer] : d->layers) names += (names.empty() ? "" : ", ") + known;
    return fmt::format("{}: layer '{}' is not known: {}", d->file, name,
                       names.empty() ? "the machine has none" : "expected " + names);
  }
  if (std::find(d->applied.begin(), d->applied.end(), name) != d->applied.end())
    return fmt::format("{}: layer '{}' is there twice", d->file, name);
  const auto append = [](std::vector<std::string>& to, const std::vector<std::string>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  for (const Op op : found->second.ops) {
    auto& parts = d->ops[static_cast<std::size_t>(op)].parts;
    append(parts[static_cast<std::size_t>(Part::cpu)], found->second.cpu);
    append(parts[static_cast<std::size_t>(Part::in)], found->second.in);
  }
  d->applied.emplace_back(name);
  return {};
}

}  // namespace orrery::model
