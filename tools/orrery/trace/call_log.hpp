// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace orrery::tool {

// `--log WORD`: which interfaces' calls are logged: "gni", "gni,dmapp", "gni=FILE". Adds to `variables` what
// the PEs' environment must have for it: the libraries in front of the interfaces (LD_PRELOAD), and
// the file. The line to show when the word is not accepted or a library is not there, else empty.
std::string log_calls(const std::string& word, std::vector<std::pair<std::string, std::string>>* variables);

}  // namespace orrery::tool
