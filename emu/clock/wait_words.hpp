// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/clock/board.hpp"

#include <string_view>

namespace orrery::clock {

// What a PE does, for the report of a deadlock. Any thread.
inline std::string_view words_of(WaitsFor why) {
  switch (why) {
    case WaitsFor::nothing:
      return "is in its program";
    case WaitsFor::event:
      return "waits for an event";
    case WaitsFor::poll:
      return "polls for something that does not come";
    case WaitsFor::sleep:
      return "sleeps";
    case WaitsFor::barrier:
      return "is in the launcher's barrier";
    case WaitsFor::memory:
      return "polls memory that no process writes";
    case WaitsFor::end:
      return "ends what it has under way";
  }
  return "?";
}

}  // namespace orrery::clock
