// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// A machine ready for use: its description, and the prices compiled from it.
//
//   auto built = build_machine("gemini");  if (!built.machine) puts(built.error.c_str());
#pragma once

#include "emu/model/description.hpp"
#include "emu/model/pricing.hpp"

#include <memory>
#include <string>
#include <vector>

namespace orrery::model {

struct Machine {
  Description description;
  Pricing pricing;
  std::vector<std::string> warnings;  // accepted, but outside what the paper's own table prints
};

struct BuiltMachine {
  std::unique_ptr<Machine> machine;  // set on success
  std::string error;                 // one line otherwise
};

// Checks what the schema cannot (sizes that do not fit together) and computes the prices.
BuiltMachine compile(const Description& description);
// load_machine() and compile() in one.
BuiltMachine build_machine(const std::string& name);

// Sum of an operation's stages in one part, as compile() takes it.
Picos stages_total(const Description& description, const std::vector<std::string>& stages);
// One stage's duration; cycles are turned into time by nic.clock.
Picos stage_time(const Description& description, const std::string& name);

// Rates that follow from the file's constants.
struct DerivedRates {
  Rate link;               // one link, raw, one direction (electrical on a dragonfly, a tile link on Gemini)
  Rate global_link;        // dragonfly: one optical link
  Rate torus_link;         // parallel tile links together
  Rate nic;                // packet payload / (cycles per packet / clock)
  Rate host_put;           // host interface, one way
  Rate host_shared;        // host interface, both ways
  double wire_lone = 1;    // payload / wire bytes of a full put packet, its response not counted
  double wire_shared = 1;  // the same, the reverse traffic's response counted in
};
DerivedRates derive_rates(const Description& description);

}  // namespace orrery::model
