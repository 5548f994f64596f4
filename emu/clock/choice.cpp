// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/choice.hpp"

#include "emu/base/config.hpp"
#include "emu/model/machine.hpp"
#include "emu/model/machine_file.hpp"

#include <fmt/core.h>

#include <charconv>

namespace orrery::clock {

namespace {

std::string_view name_of(Kind kind) {
  return kind == Kind::raw ? "raw" : kind == Kind::paced ? "paced" : "virtual";
}

std::string known_machines() {
  std::string names;
  for (const auto& shipped : model::shipped_machines()) {
    if (!names.empty()) names += ", ";
    names += shipped.name;
  }
  return names;
}

}  // namespace

std::string Choice::words() const {
  if (kind == Kind::raw) return "raw";
  std::string text = fmt::format("{} {}", machine, name_of(kind));
  if (kind == Kind::virtual_time)
    text += compute.measured ? fmt::format(" compute {}", compute.factor) : " compute zero";
  return text;
}

ReadChoice read_choice(std::string_view machine, std::string_view clock, std::string_view compute) {
  ReadChoice read;
  Choice& choice = read.choice;
  if (clock.empty()) {
    choice.kind = machine.empty() ? Kind::raw : Kind::virtual_time;
  } else if (clock == "raw") {
    choice.kind = Kind::raw;
  } else if (clock == "paced") {
    choice.kind = Kind::paced;
  } else if (clock == "virtual") {
    choice.kind = Kind::virtual_time;
  } else {
    read.problem = fmt::format("clock {} is not known: expected raw, paced or virtual", clock);
    return read;
  }
  choice.machine = machine;
  if (choice.kind != Kind::raw && machine.empty()) {
    read.problem = fmt::format("clock {} needs a machine: expected one of {}, or a machine file", clock,
                               known_machines());
    return read;
  }
  if (!machine.empty()) {
    const auto built = model::build_machine(choice.machine);
    if (!built.machine) {
      read.problem = built.error;
      return read;
    }
  }
  if (compute.empty() || compute == "zero") return read;
  choice.compute.measured = true;
  if (compute == "measured") return read;
  const auto [end, error] =
      std::from_chars(compute.data(), compute.data() + compute.size(), choice.compute.factor);
  if (error != std::errc{} || end != compute.data() + compute.size() || !(choice.compute.factor >= 0) ||
      choice.compute.factor > 1e6) {
    read.problem =
        fmt::format("compute {} is not accepted: expected zero, measured or a factor 0..1000000", compute);
  }
  return read;
}

ReadChoice choice_of_environment() {
  return read_choice(config::text("ORRERY_MACHINE"), config::text("ORRERY_CLOCK"),
                     config::text("ORRERY_COMPUTE"));
}

}  // namespace orrery::clock
