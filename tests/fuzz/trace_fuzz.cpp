// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The trace reader: any bytes are refused in one line, or read and written back the same.
#include "emu/base/check.hpp"
#include "emu/sim/workload/trace.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  orrery::sim::Trace trace;
  const auto no = orrery::sim::parse_trace({data, size}, &trace);
  if (no.refused()) {
    ORRERY_CHECK(no.why.find('\n') == std::string::npos && trace.records.empty(), "{}", no.why);
    return 0;
  }
  const auto again = orrery::sim::encode_trace(trace);
  // The header's last word is reserved and not kept.
  ORRERY_CHECK(again.size() == size && std::equal(again.begin() + 32, again.end(), data + 32), "{} bytes",
               size);
  return 0;
}
