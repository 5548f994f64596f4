// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/shmem/environment.hpp"

#include "emu/base/log.hpp"
#include "emu/memory/symmetric_heap.hpp"
#include "lib/dmapp/heap_size.hpp"
#include "lib/shmem/team.hpp"

#include "include/shmem/shmem.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <sys/auxv.h>
#include <unistd.h>

namespace orrery::shmem {

namespace {

constexpr std::array<std::string_view, 4> kNames{"SHMEM_SYMMETRIC_SIZE", "SHMEM_VERSION", "SHMEM_INFO",
                                                 "SHMEM_DEBUG"};
constexpr std::array<const char*, 3> kSizes{"SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE",
                                            "XT_SYMMETRIC_HEAP_SIZE"};

// Any value but none and 0 switches on.
bool is_on(const char* name, const char* old_name) {
  const char* value = ::secure_getenv(name);
  if (value == nullptr) value = ::secure_getenv(old_name);
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

// The number and its multiplier: OpenSHMEM's specification ignores what stands behind those.
std::string without_rest(const char* name, std::string_view text, bool speaks) {
  const auto letter = text.find_first_not_of("0123456789.");
  if (letter == std::string_view::npos || letter == 0) return std::string(text);
  const std::string_view used = text.substr(0, letter + 1);
  if (used.size() < text.size() && memory::parse_size(used).ok()) {
    if (speaks) log::warn("{}={}: taken as {}; only one multiplier counts", name, text, used);
    return std::string(used);
  }
  return std::string(text);
}

void warn_of_unknown() {
  if (getauxval(AT_SECURE) != 0) return;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with("SHMEM_")) continue;
    bool known = false;
    for (const std::string_view one : kNames) known = known || one == name;
    if (!known)
      log::warn(
          "{} is set, which this OpenSHMEM does not know: it knows SHMEM_SYMMETRIC_SIZE, SHMEM_VERSION, "
          "SHMEM_INFO, SHMEM_DEBUG",
          name);
  }
}

}  // namespace

void read_environment() {
  // Once for the job, where the launcher says which PE this is.
  const char* const pe = ::secure_getenv("PMI_RANK");
  const bool speaks = pe == nullptr || std::strcmp(pe, "0") == 0;
  // The teams' words are not the program's.
  dmapp::HeapSize heap{
      .variable = kSizes[0], .text = "64M", .is_default = true, .added = kTeams * sizeof(TeamWords)};
  for (const char* const name : kSizes) {
    const char* const set = ::secure_getenv(name);
    if (set == nullptr) continue;
    heap = {
        .variable = name, .text = without_rest(name, set, speaks), .is_default = false, .added = heap.added};
    break;
  }
  dmapp::set_heap_size(heap);
  if (!speaks) return;
  warn_of_unknown();
  if (is_on("SHMEM_VERSION", "SMA_VERSION") || is_on("SHMEM_INFO", "SMA_INFO"))
    std::printf("%s, OpenSHMEM %d.%d\n", SHMEM_VENDOR_STRING, SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION);
  if (is_on("SHMEM_INFO", "SMA_INFO")) {
    std::printf(
        "SHMEM_SYMMETRIC_SIZE  bytes of the symmetric heap of a PE, K, M, G, T (64M)\n"
        "SHMEM_VERSION         print the version at the start\n"
        "SHMEM_INFO            print this\n"
        "SHMEM_DEBUG           accepted; errors are always checked for\n");
  }
}

}  // namespace orrery::shmem
