// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Words and lines from outside: variables, options, what a PE writes into its record, what the kernel says of
// other users' sockets. The first byte says which parser reads the rest.
#include "emu/base/check.hpp"
#include "emu/base/fault_spec.hpp"
#include "emu/base/printable.hpp"
#include "emu/clock/record.hpp"
#include "emu/job/abstract_socket.hpp"
#include "emu/job/domain_list.hpp"
#include "emu/job/entrance.hpp"
#include "emu/job/resource_limits.hpp"
#include "emu/job/socket_folder.hpp"
#include "emu/wire/fault_wire.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace orrery;

void limits(std::string_view text) {
  std::string why;
  const bool good = job::parse_limits(text, &why).ok();
  ORRERY_CHECK(good != !why.empty(), "a refusal says why, and nothing else does");
}

void faults(std::string_view text) {
  std::string why;
  const bool good = parse_faults(text, &why).has_value();
  ORRERY_CHECK(good != !why.empty(), "a refusal says why, and nothing else does");
}

void domains(std::string_view text) {
  const std::size_t half = text.find('|');
  const std::string tags(text.substr(0, half));
  const std::string cookies(half == std::string_view::npos ? "" : text.substr(half + 1));
  const auto found = job::parse_domain_list(tags.c_str(), cookies.c_str());
  ORRERY_CHECK(found.size() <= tags.size() + 1, "no more domains than items");
}

void record(std::string_view line) {
  if (const auto found = clock::parse_line(line)) ORRERY_CHECK(clock::line_of(*found) == line, "record");
  if (const auto found = clock::parse_inexactness(line))
    ORRERY_CHECK(clock::line_of(*found) == line, "inexactness");
}

void sockets(std::string_view line) {
  if (const auto name = job::listening_name(line))
    ORRERY_CHECK(name->data() >= line.data() && name->size() <= line.size(), "name");
  if (const auto name = job::EntranceName::parse(line))
    ORRERY_CHECK(name->launcher > 0 && name->job_id != 0, "entrance");
  if (job::is_in_folder(line))
    ORRERY_CHECK(std::count(line.begin(), line.end(), '/') == 1 && line.size() > 1 && line != "/..",
                 "folder");
}

void printed(std::string_view text) {
  const std::string shown = printable(text);
  ORRERY_CHECK(std::all_of(shown.begin(), shown.end(),
                           [](char c) { return c == '\n' || c == '\t' || (c >= ' ' && c <= '~'); }),
               "a terminal would obey it");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      limits(text);
      break;
    case 1:
      faults(text);
      break;
    case 2:
      domains(text);
      break;
    case 3:
      record(text);
      break;
    case 4:
      sockets(text);
      break;
    case 5:
      (void)wire::FaultRates::parse(text);
      break;
    default:
      printed(text);
  }
  return 0;
}
