// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/wait.hpp"
#include "emu/nic/host/runtime.hpp"
#include "include/gni/gni_pub.h"
#include "lib/gni/domain/privileged.hpp"
#include "lib/gni/objects.hpp"
#include "lib/gni/status.hpp"

#include <limits>
#include <vector>

// What a launcher does to a job that runs: its traffic is stopped, and goes on. A job is told by the tag and
// the cookie of its domain, and by its id where GNI_ConfigureJob gave it one.
namespace orrery::gni {

namespace {

struct JobTraffic {
  nic::Nic* nic = nullptr;
  std::uint32_t domain = 0;
  std::vector<nic::ProcessName> processes;
};

gni_return_t find_traffic(std::uint32_t device_id, std::uint64_t job_id, std::uint8_t ptag,
                          std::uint32_t cookie, JobTraffic* traffic) {
  if (!is_privileged()) return GNI_RC_PERMISSION_ERROR;
  if (device_id != 0) return GNI_RC_NO_MATCH;
  const auto runtime = nic::Runtime::of_process();
  if (!runtime.ok()) return return_of(runtime.code());
  job::Job& job = runtime.value()->job();
  const auto domain = find_domain(job, ptag, cookie);
  if (!domain.ok()) return GNI_RC_NO_MATCH;
  if (job.directory().claimed_by(domain.value()).value_or(job_id) != job_id) return GNI_RC_NO_MATCH;
  traffic->nic = &runtime.value()->nic();
  traffic->domain = domain.value();
  for (const job::ProcessRef& process : job.directory().processes_in(domain.value()))
    traffic->processes.push_back({static_cast<wire::ProcessSlot>(process.index), process.generation});
  return GNI_RC_SUCCESS;
}

}  // namespace

}  // namespace orrery::gni

using orrery::gni::JobTraffic;
using orrery::gni::return_of;

extern "C" {

gni_return_t GNI_SuspendJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                            uint32_t timeout) {
  JobTraffic traffic;
  const gni_return_t found = orrery::gni::find_traffic(device_id, job_id, ptag, cookie, &traffic);
  if (found != GNI_RC_SUCCESS) return found;
  const std::int64_t deadline = timeout == UINT32_MAX
                                    ? std::numeric_limits<std::int64_t>::max()
                                    : orrery::monotonic_ns() + std::int64_t{timeout} * 1'000'000;
  return return_of(traffic.nic->suspension().suspend(traffic.processes, traffic.domain, deadline));
}

gni_return_t GNI_ResumeJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie) {
  JobTraffic traffic;
  const gni_return_t found = orrery::gni::find_traffic(device_id, job_id, ptag, cookie, &traffic);
  if (found != GNI_RC_SUCCESS) return found;
  return return_of(traffic.nic->suspension().resume(traffic.processes, traffic.domain));
}

}  // extern "C"
