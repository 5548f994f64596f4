// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/trace/call_log.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>

namespace orrery::tool {

namespace {

// The interfaces that have a log, with spaces between them.
constexpr std::string_view kLogged = ORRERY_LOGGED_APIS;

bool has_log(const std::string& api) {
  std::istringstream known{std::string(kLogged)};
  for (std::string one; known >> one;) {
    if (one == api) return true;
  }
  return false;
}

// Where the log's library lies, seen from this program: installed, and in the tree that built it. Empty:
// nowhere.
std::string find_library(const std::string& api, std::string* looked) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string file = fmt::format("liborrery_log_{}.so", api);
  for (const std::string& folder : {std::string(ORRERY_LIBRARIES_FROM_TOOL),
                                    fmt::format("{}/{}/log", ORRERY_BUILT_LIBRARIES_FROM_TOOL, api)}) {
    const auto path = (self.parent_path() / folder / file).lexically_normal();
    if (std::filesystem::exists(path, error)) return path.string();
    *looked += fmt::format("{}{}", looked->empty() ? file + " is in none of " : " and ",
                           path.parent_path().string());
  }
  return "";
}

}  // namespace

std::string log_calls(const std::string& word, std::vector<std::pair<std::string, std::string>>* variables) {
  const std::size_t equals = word.find('=');
  std::istringstream apis(word.substr(0, equals));
  std::string preload;
  for (std::string api; std::getline(apis, api, ',');) {
    if (!has_log(api)) {
      preload.clear();
      break;
    }
    std::string looked;
    const std::string library = find_library(api, &looked);
    if (library.empty()) return fmt::format("--log {}: {}", api, looked);
    if (library.find_first_of(": ") != std::string::npos)
      return fmt::format("--log {}: {} cannot be loaded: its path has a space or a colon", api, library);
    preload += (preload.empty() ? "" : ":") + library;
  }
  if (preload.empty() || equals == word.size() - 1)
    return fmt::format(
        "--log {} is not accepted: expected one or more of {}, with commas between them, and =FILE", word,
        kLogged);
  const char* const others = std::getenv("LD_PRELOAD");
  variables->emplace_back("LD_PRELOAD", others == nullptr || *others == 0 ? preload : preload + ":" + others);
  if (equals != std::string::npos) {
    // The PEs may change their folder before they call anything.
    std::error_code error;
    const auto path = std::filesystem::absolute(word.substr(equals + 1), error);
    if (!std::filesystem::is_directory(path.parent_path(), error))
      return fmt::format("--log {}: {} is not a folder", word, path.parent_path().string());
    variables->emplace_back("ORRERY_LOG_CALLS", path.string());
  }
  return "";
}

}  // namespace orrery::tool
