// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/config.hpp"
#include "emu/base/printable.hpp"
#include "emu/base/version.hpp"
#include "emu/job/cores.hpp"
#include "emu/job/host_directory_layout.hpp"
#include "emu/job/pmi_line.hpp"
#include "emu/wire/ofi_endpoint.hpp"
#include "tools/orrery/hosts/host_probe.hpp"
#include "tools/orrery/subcommand.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include <sys/utsname.h>
#include <unistd.h>

namespace orrery::tool {

namespace {

using Json = nlohmann::ordered_json;

std::string kernel() {
  utsname name{};
  return uname(&name) == 0 ? fmt::format("{} {} {}", name.sysname, name.release, name.machine) : "unknown";
}

Json everything() {
  Json all;
  all["version"] = kVersion;
  all["kernel"] = kernel();
  const auto cores = job::allowed_cores();
  all["cores"] = {{"allowed_cores", cores.cores},
                  {"allowed_threads", cores.threads},
                  {"cgroup_quota_cpus", cores.cpu_quota},
                  {"usable", cores.usable()},
                  {"numa_nodes", cores.numa_nodes}};
  all["job_limits"] = {{"pes", job::layout::kMaxPes},
                       {"processes_per_host", job::layout::kMaxProcesses},
                       {"endpoints_per_host", job::layout::kMaxEndpoints},
                       {"domains", job::layout::kMaxDomains},
                       {"pmi_key_bytes", job::kPmiKeyMax},
                       {"pmi_value_bytes", job::kPmiValueMax}};
  all["features"] = Json::array();
  for (const Feature& one : probe_features()) {
    all["features"].push_back(
        {{"name", one.name}, {"available", one.available}, {"detail", one.detail}, {"use", one.use}});
  }
  all["limits"] = Json::array();
  for (const Limit& one : probe_limits()) {
    all["limits"].push_back({{"name", one.name}, {"value", one.value}, {"use", one.use}});
  }
  all["variables"] = Json::array();
  for (const config::Knob& knob : config::knobs()) {
    const char* value = std::getenv(knob.name.data());
    all["variables"].push_back({{"name", knob.name},
                                {"value", value == nullptr ? Json() : Json(value)},
                                {"default", knob.default_value},
                                {"accepts", knob.accepts},
                                {"help", knob.help}});
  }
  all["providers"] = wire::OfiEndpoint::usable_providers();
  return all;
}

std::string text(const Json& value) { return value.get<std::string>(); }

void print(const Json& all) {
  fmt::print("orrery {} on {}\n", text(all["version"]), text(all["kernel"]));
  const Json& cores = all["cores"];
  const double quota = cores["cgroup_quota_cpus"].get<double>();
  fmt::print("cores: {} allowed ({} hardware threads, cgroup quota {}), {} PE{} at once, {} NUMA node{}\n",
             cores["allowed_cores"].get<int>(), cores["allowed_threads"].get<int>(),
             quota == 0 ? std::string("none") : fmt::format("{} CPUs", quota), cores["usable"].get<int>(),
             cores["usable"].get<int>() == 1 ? "" : "s", cores["numa_nodes"].get<int>(),
             cores["numa_nodes"].get<int>() == 1 ? "" : "s");
  const Json& job = all["job_limits"];
  fmt::print("limits of a job: {} PEs, {} processes, {} endpoints and {} domains on a host\n",
             job["pes"].get<int>(), job["processes_per_host"].get<int>(),
             job["endpoints_per_host"].get<int>(), job["domains"].get<int>());
  fmt::print("\nwhat the kernel allows here\n");
  for (const Json& one : all["features"]) {
    fmt::print("  {:<20} {:<3}  {}\n  {:<20}      {}\n", text(one["name"]),
               one["available"].get<bool>() ? "yes" : "no", text(one["detail"]), "", text(one["use"]));
  }
  fmt::print("\nlimits of a process\n");
  for (const Json& one : all["limits"]) {
    fmt::print("  {:<20} {:<28} {}\n", text(one["name"]), text(one["value"]), text(one["use"]));
  }
  std::string providers;
  for (const Json& one : all["providers"]) providers += (providers.empty() ? "" : ", ") + text(one);
  fmt::print("\nproviders of libfabric for the wire between hosts\n  {}\n",
             providers.empty() ? "none: libfabric is not installed" : providers);
  fmt::print("\nvariables\n");
  for (const Json& one : all["variables"]) {
    const std::string preset = text(one["default"]);
    fmt::print("  {} (default {}; {}){}\n      {}\n", text(one["name"]), preset.empty() ? "unset" : preset,
               text(one["accepts"]), one["value"].is_null() ? "" : " = " + printable(text(one["value"])),
               text(one["help"]));
  }
}

}  // namespace

void add_info(CLI::App& root, int& exit_code) {
  auto* command =
      root.add_subcommand("info", "Version, limits, what the kernel allows, every ORRERY_ variable");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "As JSON");
  command->callback([json, &exit_code] {
    const Json all = everything();
    if (*json) {
      // A variable's value may be no UTF-8.
      fmt::print("{}\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
    } else {
      print(all);
    }
    for (const std::string& problem : config::check_environment(environ)) {
      std::fprintf(stderr, "orrery: warn: %s\n", printable(problem).c_str());
    }
    exit_code = 0;
  });
}

}  // namespace orrery::tool
