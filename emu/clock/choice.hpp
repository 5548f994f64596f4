// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/clock/clock.hpp"

#include <string>
#include <string_view>

namespace orrery::clock {

// What counts as time between calls.
struct Compute {
  bool measured = false;  // processor time; else nothing
  double factor = 1.0;    // times this
};

// Which machine's time, and how it passes: ORRERY_MACHINE, ORRERY_CLOCK, ORRERY_COMPUTE, ORRERY_OPTIMISTIC.
struct Choice {
  Kind kind = Kind::raw;
  std::string machine;  // empty: none
  Compute compute;
  std::int64_t ahead_ns = 0;  // how far a PE may run ahead of the others (optimistic); 0: not at all
  // In words, the same in every PE of a job.
  std::string words() const;
};

struct ReadChoice {
  Choice choice;
  std::string problem;  // one line when the choice is not acceptable
};

// From three texts as the user wrote them; empty: not given. A machine without a clock is virtual time.
// Problems: unknown clock, a clock without a machine, an unknown machine (lists those that there are),
// compute, optimistic. Compute and optimistic are ignored without virtual time.
ReadChoice read_choice(std::string_view machine, std::string_view clock, std::string_view compute,
                       std::string_view optimistic = {});
// The same from the environment, through emu/base/config.
ReadChoice choice_of_environment();

}  // namespace orrery::clock
