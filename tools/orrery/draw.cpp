// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/subcommand.hpp"
namespace orrery::tool {
void add_draw(CLI::App& root, int& exit_code) { (void)root; (void)exit_code; }
}  // namespace orrery::tool
