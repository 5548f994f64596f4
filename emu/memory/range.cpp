// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/range.hpp"

namespace orrery::memory {

std::string_view obstacle_name(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::none:
      return "none";
    case Obstacle::unmapped:
      return "not mapped";
    case Obstacle::read_only:
      return "read-only";
    case Obstacle::stack:
      return "stack or thread storage";
    case Obstacle::shared_mapping:
      return "shared mapping";
    case Obstacle::huge_pages:
      return "huge pages";
    case Obstacle::device:
      return "device mapping";
    case Obstacle::own_state:
      return "state of this library";
    case Obstacle::pinned:
      return "kept from children by the program";
    case Obstacle::beyond_span:
      return "beyond the memory file";
    case Obstacle::no_file:
      return "no memory file";
  }
  return "unknown";
}

}  // namespace orrery::memory
