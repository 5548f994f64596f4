// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/trace/call_log.hpp"

#include <fmt/core.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <unistd.h>

namespace orrery::tool {

namespace {

constexpr const char* kLibrary = "liborrery_log_gni.so";

// Where the library lies, seen from this program: installed, and in the tree that built it. Empty: nowhere.
std::string find_library(std::string* looked) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const char* folder : {ORRERY_LIBRARIES_FROM_TOOL, ORRERY_BUILT_LOG_FROM_TOOL}) {
    const auto path = (self.parent_path() / folder / kLibrary).lexically_normal();
    if (std::filesystem::exists(path, error)) return path.string();
    *looked += fmt::format("{}{}", looked->empty() ? "" : " and ", path.parent_path().string());
  }
  return "";
}

}  // namespace

std::string log_calls(const std::string& word, std::vector<std::pair<std::string, std::string>>* variables) {
  if (word != "gni" && !(word.starts_with("gni=") && word.size() > 4))
    return fmt::format("--log {} is not accepted: expected gni or gni=FILE", word);
  std::string looked;
  const std::string library = find_library(&looked);
  if (library.empty()) return fmt::format("--log gni: {} is in none of {}", kLibrary, looked);
  if (library.find_first_of(": ") != std::string::npos)
    return fmt::format("--log gni: {} cannot be loaded: its path has a space or a colon", library);
  const char* const others = std::getenv("LD_PRELOAD");
  variables->emplace_back("LD_PRELOAD", others == nullptr || *others == 0 ? library : library + ":" + others);
  if (word.size() > 4) {
    // The PEs may change their folder before they call anything.
    std::error_code error;
    const auto path = std::filesystem::absolute(word.substr(4), error);
    if (!std::filesystem::is_directory(path.parent_path(), error))
      return fmt::format("--log {}: {} is not a folder", word, path.parent_path().string());
    variables->emplace_back("ORRERY_LOG_CALLS", path.string());
  }
  return "";
}

}  // namespace orrery::tool
