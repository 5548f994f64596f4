// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Any bytes as a machine file: refused with one line, or a machine that can be compiled and asked.
#include "emu/base/check.hpp"
#include "emu/model/machine.hpp"
#include "emu/model/machine_file.hpp"
#include "emu/model/quote.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

using namespace orrery;
using namespace orrery::model;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const MachineFile file = parse_machine({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
  if (!file.description) {
    ORRERY_CHECK(!file.error.empty() && file.error.find('\n') == std::string::npos);
    return 0;
  }
  const BuiltMachine built = compile(*file.description);
  if (!built.machine) {
    ORRERY_CHECK(!built.error.empty());
    return 0;
  }
  const Pricing& p = built.machine->pricing;
  for (int op = 0; op < kOps; ++op) {
    const Quote q =
        quote(p, {.op = static_cast<Op>(op), .src = 0, .dst = p.nodes - 1, .bytes = 100}, nullptr);
    ORRERY_CHECK(q.data_at >= q.cpu_busy);
  }
  return 0;
}
