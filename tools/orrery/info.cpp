// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/config.hpp"
#include "tools/orrery/subcommand.hpp"

#include <cstdio>

namespace orrery::tool {

void add_info(CLI::App& root, int& exit_code) {
  auto* command = root.add_subcommand("info", "Version, limits and every ORRERY_ variable");
  command->callback([&exit_code] {
    std::printf("orrery %s\n", ORRERY_VERSION);
    for (const auto& knob : config::knobs()) {
      std::printf("%s (default %s; %s): %s\n", knob.name.data(), knob.default_value.data(),
                  knob.accepts.data(), knob.help.data());
    }
    exit_code = 0;
  });
}

}  // namespace orrery::tool
