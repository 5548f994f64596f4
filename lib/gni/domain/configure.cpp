// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/log.hpp"
#include "emu/nic/host/runtime.hpp"
#include "lib/gni/domain/limits.hpp"
#include "lib/gni/domain/privileged.hpp"
#include "lib/gni/raw_value.hpp"
#include "lib/gni/status.hpp"

#include <optional>
#include <vector>

#include <unistd.h>

// What a launcher does for a job before its processes attach. A domain's limits stand in the job's directory,
// so that they hold in every process on this host; node translation is the device's, which is the process's
// own.
namespace orrery::gni {

namespace {

constexpr std::uint8_t kMaxPtag = GNI_PTAG_MAX;

// The job's domain of (ptag, cookie), made if it is not there. A tag belongs to the job and the cookie that
// it was first used for; GNI_FIND_ALLOC_PTAG takes the cookie's, or a free one.
Result<job::DomainId> make_domain(job::Job& job, std::uint8_t ptag, std::uint32_t cookie) {
  const auto all = job.directory().domains();
  if (ptag == GNI_FIND_ALLOC_PTAG) {
    std::vector<bool> used(256);
    for (const auto& domain : all) used[domain.ptag] = true;
    const auto known = job.find_ptag(cookie);
    std::uint32_t free = GNI_PTAG_USER_START;
    while (free <= GNI_PTAG_USER_END && used[free]) ++free;
    if (!known.ok() && free > GNI_PTAG_USER_END) return Errc::no_resource;
    ptag = known.ok() ? known.value() : static_cast<std::uint8_t>(free);
  }
  if (const auto found = job.find_domain(ptag, cookie); found.ok()) return found;
  for (const auto& domain : all) {
    if (domain.ptag == ptag) return Errc::invalid_state;
  }
  return job.declare_domain(ptag, cookie);
}

bool is_limit(std::int32_t value) { return value >= GNI_JOB_INVALID_LIMIT; }

// Limits that the union's byte has no -1 for: 0 leaves them as they are.
void set_limits(job::HostDirectory& directory, job::DomainId domain, const gni_job_limits_t& limits) {
  const auto set = [&](Resource resource, std::int32_t most) {
    if (most != GNI_JOB_INVALID_LIMIT)
      directory.set_limit(domain, resource, static_cast<std::uint32_t>(most));
  };
  set(Resource::mdd, limits.mdd_limit);
  set(Resource::fma, limits.fma_limit);
  set(Resource::bte, limits.bte_limit);
  set(Resource::cq, limits.cq_limit);
  if (limits.a.mrt_limit != GNI_JOB_INVALID_LIMIT && limits.a.m.ce_limit != 0)
    set(Resource::ce, limits.a.m.ce_limit);
}

gni_return_t configure(std::uint32_t device_id, std::uint64_t job_id, std::uint8_t ptag, std::uint32_t cookie,
                       const gni_job_limits_t* limits) {
  if ((ptag > kMaxPtag && ptag != GNI_FIND_ALLOC_PTAG) ||
      (limits != nullptr &&
       (!is_limit(limits->mdd_limit) || !is_limit(limits->fma_limit) || !is_limit(limits->bte_limit) ||
        !is_limit(limits->cq_limit) || !is_limit(limits->ntt_base) || !is_limit(limits->ntt_size))))
    return GNI_RC_INVALID_PARAM;
  if (device_id != 0) return GNI_RC_NO_MATCH;
  if (!is_privileged()) return GNI_RC_PERMISSION_ERROR;
  const auto job = job::Job::of_process();
  if (!job.ok()) return return_of(job.code());
  job::HostDirectory& directory = job.value()->directory();
  const auto domain = make_domain(*job.value(), ptag, cookie);
  if (!domain.ok()) return return_of(domain.code());
  const Errc claimed = directory.claim_domain(domain.value(), job_id);
  if (claimed != Errc::ok) return return_of(claimed);
  if (limits == nullptr) return GNI_RC_SUCCESS;
  if (limits->ntt_size > 0) {
    const Errc sized =
        directory.set_translation_size(domain.value(), static_cast<std::uint32_t>(limits->ntt_size));
    if (sized != Errc::ok) return return_of(sized);
  }
  set_limits(directory, domain.value(), *limits);
  return GNI_RC_SUCCESS;
}

gni_return_t translate(int device_id, const gni_ntt_descriptor_t* desc, std::uint32_t* base) {
  if (base == nullptr ||
      (desc != nullptr && (desc->group_size == 0 || desc->u.table == nullptr || desc->flags != 0 ||
                           desc->group_size > nic::TranslationTable::kEntries)))
    return GNI_RC_INVALID_PARAM;
  if (device_id != 0 && device_id != -1) return GNI_RC_NO_MATCH;
  if (!is_privileged()) return GNI_RC_PERMISSION_ERROR;
  const auto runtime = nic::Runtime::of_process();
  if (!runtime.ok()) return return_of(runtime.code());
  nic::TranslationTable& table = runtime.value()->nic().device().translation;
  if (desc == nullptr) return return_of(table.unload(*base));
  const std::optional<std::uint32_t> where =
      *base == UINT32_MAX ? std::nullopt : std::optional<std::uint32_t>(*base);
  const auto loaded = table.load(where, {desc->u.table, desc->group_size});
  if (!loaded.ok()) return return_of(loaded.code());
  *base = loaded.value();
  return GNI_RC_SUCCESS;
}

}  // namespace

}  // namespace orrery::gni

using orrery::gni::return_of;

extern "C" {

gni_return_t GNI_ConfigureJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                              gni_job_limits_t* limits) {
  return orrery::gni::configure(device_id, job_id, ptag, cookie, limits);
}

gni_return_t GNI_ConfigureJobFd(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                                gni_job_limits_t* limits, int* nic_fd) {
  if (nic_fd == nullptr) return GNI_RC_INVALID_PARAM;
  const gni_return_t configured = orrery::gni::configure(device_id, job_id, ptag, cookie, limits);
  if (configured != GNI_RC_SUCCESS) return configured;
  const int fd = orrery::gni::hold();
  if (fd < 0) return GNI_RC_ERROR_RESOURCE;
  *nic_fd = fd;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_ConfigureNTT(int device_id, gni_ntt_descriptor_t* ntt_desc, uint32_t* ntt_base) {
  return orrery::gni::translate(device_id, ntt_desc, ntt_base);
}

gni_return_t GNI_ConfigureNTTandJob(int device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                                    gni_job_limits_t* limits, gni_ntt_descriptor_t* ntt_desc,
                                    uint32_t* ntt_base) {
  if (ntt_desc == nullptr) return GNI_RC_INVALID_PARAM;
  const gni_return_t configured = orrery::gni::configure(
      device_id == -1 ? 0 : static_cast<std::uint32_t>(device_id), job_id, ptag, cookie, limits);
  return configured == GNI_RC_SUCCESS ? orrery::gni::translate(device_id, ntt_desc, ntt_base) : configured;
}

}  // extern "C"
