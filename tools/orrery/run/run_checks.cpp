// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/run/run_checks.hpp"

#include "emu/base/config.hpp"
#include "emu/base/fault_spec.hpp"
#include "emu/wire/fault_wire.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <sys/stat.h>

namespace orrery::tool {

std::string wrong_variable(const std::vector<std::pair<std::string, std::string>>& set_otherwise) {
  for (const config::Knob& knob : config::knobs()) {
    const char* const value = std::getenv(knob.name.data());
    const bool overridden = std::any_of(set_otherwise.begin(), set_otherwise.end(),
                                        [&](const auto& one) { return one.first == knob.name; });
    // The descriptor is another job's, and this one makes its own.
    if (value == nullptr || overridden || knob.name.starts_with("ORRERY_JOB_") ||
        knob.name == "ORRERY_GNI_OF")
      continue;
    if (auto problem = config::problem_with(knob, value)) return *problem;
    if (knob.name == "ORRERY_WIRE_FAULTS" && *value != 0 && !wire::FaultRates::parse(value).ok())
      return fmt::format("{}={} is not accepted: expected {}", knob.name, value, wire::FaultRates::kAccepted);
  }
  return {};
}

std::string wrong_value(std::string_view variable) {
  const auto knob = std::find_if(config::knobs().begin(), config::knobs().end(),
                                 [&](const config::Knob& one) { return one.name == variable; });
  const char* const value = knob == config::knobs().end() ? nullptr : std::getenv(knob->name.data());
  return value == nullptr ? std::string() : config::problem_with(*knob, value).value_or("");
}

std::string refused_with_clock(const std::string& option) {
  std::string why;
  const std::string faults = option.empty() ? config::text("ORRERY_FAULT") : option;
  const auto spec = parse_faults(faults, &why);
  if (spec && spec->any()) {
    return fmt::format("{} works in raw time only: leave out --machine, or add --clock raw",
                       option.empty() ? "ORRERY_FAULT" : "--fault");
  }
  const char* const wire = std::getenv("ORRERY_WIRE");  // others than there are have their own message
  if (wire != nullptr && std::string_view(wire) == "ofi")
    return "ORRERY_WIRE=ofi cannot be used with a clock: unset it or take --clock raw";
  return {};
}

std::string dead_and_absent(std::string_view faults, const job::Placement& placement) {
  std::string why;
  const auto spec = parse_faults(faults, &why);
  if (!spec) return {};
  std::vector<std::uint32_t> there;
  for (const job::PePlace& place : placement.pes()) there.push_back(place.nic_address);
  std::sort(there.begin(), there.end());
  there.erase(std::unique(there.begin(), there.end()), there.end());
  std::string absent;
  for (const DeadNode& node : spec->dead) {
    if (std::binary_search(there.begin(), there.end(), node.nic_address)) continue;
    absent += fmt::format("{}dead={}", absent.empty() ? "" : ", ", node.nic_address);
  }
  if (absent.empty()) return {};
  std::string theirs;
  for (std::size_t first = 0, last = 0; first < there.size(); first = last + 1) {
    for (last = first; last + 1 < there.size() && there[last + 1] == there[last] + 1;) ++last;
    theirs +=
        (theirs.empty() ? "" : ", ") + (first == last ? fmt::format("{}", there[first])
                                                      : fmt::format("{} to {}", there[first], there[last]));
  }
  return fmt::format("{}: no PE has such a NIC address; theirs: {}", absent, theirs);
}

std::string why_not_run(const std::string& name) {
  if (name.find('/') == std::string::npos) return "there is none of that name";
  struct stat info {};
  if (stat(name.c_str(), &info) != 0) return "there is no such file";
  if (S_ISDIR(info.st_mode)) return "it is a folder";
  return "it is not executable (chmod +x)";
}

std::optional<std::uint32_t> parse_count(std::string_view text, std::uint32_t most) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number == 0 || number > most)
    return std::nullopt;
  return number;
}

std::optional<std::int64_t> parse_seconds(std::string_view text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || !(seconds >= 1e-3) || seconds > kMaxTimeout)
    return std::nullopt;
  return static_cast<std::int64_t>(seconds * 1e9);
}

}  // namespace orrery::tool
