// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/pmi/gni_variables.hpp"

#include "emu/base/log.hpp"
#include "emu/job/job.hpp"
#include "emu/job/process_stat.hpp"

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace orrery::pmi {

namespace {

constexpr const char* kOwner = "ORRERY_GNI_OF";
constexpr std::string_view kAlone = "alone.";

const char* variable(const char* name) { return ::secure_getenv(name); }

bool is_users() { return variable("PMI_GNI_PTAG") != nullptr && variable(kOwner) == nullptr; }

}  // namespace

std::string job_identity(const job::Launch& launch) {
  if (!launch.entrance.empty()) return launch.entrance;
  if (launch.kind == job::LaunchKind::pmix) {
    const char* const name = variable("PMIX_NAMESPACE");
    return std::string("pmix.") + (name == nullptr ? "" : name);
  }
  if (launch.kind != job::LaunchKind::pmi1) return {};
  const char* const slurm_job = variable("SLURM_JOB_ID");
  const char* const slurm_step = variable("SLURM_STEP_ID");
  if (slurm_job != nullptr && slurm_step != nullptr)
    return std::string("slurm.") + slurm_job + "." + slurm_step;
  // Hydra names nothing, but all processes of a host have their wire from one process.
  if (launch.local_size != launch.size) return {};
  const auto server = job::Launch::kOfProcess.maker_of(launch.pmi_fd);
  if (!server || *server <= 0) return {};
  const auto stat = job::process_stat(*server);
  if (!stat.exists) return {};
  return "pmi." + std::to_string(*server) + "." + std::to_string(stat.start_time);
}

void settle_gni_variables(const job::Launch& launch) {
  if (is_users()) return;
  const bool alone = launch.kind == job::LaunchKind::singleton;
  const std::string identity = alone ? std::string(kAlone) : job_identity(launch);
  const char* const owner = variable(kOwner);
  const bool ours =
      owner != nullptr && (alone ? std::string_view(owner).starts_with(kAlone) : owner == identity);
  if (owner != nullptr && !ours && !identity.empty()) {
    for (const char* name : {"PMI_GNI_PTAG", "PMI_GNI_COOKIE", "PMI_GNI_DEV_ID", "PMI_GNI_LOC_ADDR", kOwner})
      unsetenv(name);
  }
  if (identity.empty() || !launch.entrance.empty()) return;
  // Once more where they are ours already: a client may have cut the lists, which it takes apart in place.
  // What a process alone has from its parent it keeps.
  static constinit std::optional<std::vector<job::HostDirectory::Domain>> g_alone;
  if (alone && ours && !g_alone) return;
  if (alone && !g_alone) g_alone = job::make_domains();
  if (!ours) setenv(kOwner, (alone ? identity + std::to_string(getpid()) : identity).c_str(), 1);
  set_gni_variables(job::domain_variables(alone ? *g_alone : job::domains_of(identity),
                                          job::Job::nic_address_of_this_host()));
}

void set_gni_variables(const job::DomainVariables& variables) {
  const int replace = is_users() ? 0 : 1;
  // The same for all four: the first of them decides whose they are.
  setenv("PMI_GNI_PTAG", variables.ptag.c_str(), replace);
  setenv("PMI_GNI_COOKIE", variables.cookie.c_str(), replace);
  setenv("PMI_GNI_DEV_ID", variables.dev_id.c_str(), replace);
  setenv("PMI_GNI_LOC_ADDR", variables.loc_addr.c_str(), replace);
}

namespace {

// When the library is loaded. What is wrong with the environment is PMI_Init's to say.
__attribute__((constructor)) void set_when_loaded() {
  if (variable("PMI_NO_PREINITIALIZE") != nullptr) return;
  const auto level = log::g_level.exchange(log::Level::off, std::memory_order_relaxed);
  const auto launch =
      job::Launch::detect([](const char* name) -> const char* { return ::secure_getenv(name); });
  log::g_level.store(level, std::memory_order_relaxed);
  if (launch.ok() && !launch.value().pmi_problem()) settle_gni_variables(launch.value());
}

}  // namespace

}  // namespace orrery::pmi
