// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/description.hpp"

#include "emu/base/units.hpp"

#include <fmt/format.h>

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

}  // namespace orrery::model
