// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/target/match_classic.hpp"

#include "tests/emu/nic/target/match_bench.hpp"
#include "tests/emu/nic/target/match_classic_model.hpp"

namespace orrery::nic::match::classic {

inline constexpr Shape kShape{.entries = 4096,
                              .headers = 1,
                              .queues = 8,
                              .counters = 64,
                              .triggers = 1,
                              .ring_bytes = 4u << 20,
                              .descriptors = 4096,
                              .accesses = Lists::kAccesses};

inline Access everyone() {
  return {.allows = 1, .source = {kAny, kAny}, .uid = kAny, .jid = kAny, .portal = kAny};
}

// A unit with one interface of Portals 3.
class Bench3 : public Bench {
 public:
  Bench3() : Bench(0, kShape, 15'000) {
    view.interface(0).options |= kClassicInterface;
    view.interface(0).portals = Lists::kPortals;
    view.access(0) = everyone();
  }
};

}  // namespace orrery::nic::match::classic
