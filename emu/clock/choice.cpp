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

// Empty: fine, and not asked for.
std::string read_ahead(std::string_view text, Choice* choice) {
  if (text.empty()) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), choice->ahead_ns);
  if (error != std::errc{} || end != text.data() + text.size() || choice->ahead_ns < 1 ||
      choice->ahead_ns > 1'000'000'000)
    return fmt::format("optimistic {} is not accepted: expected 1..1000000000 ns", text);
  // Like compute it means nothing to the other clocks: exported for some runs, it is there for all.
  if (choice->kind != Kind::virtual_time) choice->ahead_ns = 0;
  return {};
}

}  // namespace

std::string Choice::words() const {
  if (kind == Kind::raw) return "raw";
  std::string text = fmt::format("{} {}", machine, name_of(kind));
  if (kind == Kind::virtual_time)
    text += compute.measured ? fmt::format(" compute {}", compute.factor) : " compute zero";
  if (ahead_ns != 0) text += fmt::format(" optimistic {} ns", ahead_ns);
  return text;
}

ReadChoice read_choice(std::string_view machine, std::string_view clock, std::string_view compute,
                       std::string_view optimistic) {
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
  read.problem = read_ahead(optimistic, &choice);
  if (!read.problem.empty() || compute.empty() || compute == "zero") return read;
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
                     config::text("ORRERY_COMPUTE"), config::text("ORRERY_OPTIMISTIC"));
}

}  // namespace orrery::clock
