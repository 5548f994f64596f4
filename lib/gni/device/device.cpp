// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/config.hpp"
#include "emu/nic/host/runtime.hpp"
#include "lib/gni/domain/limits.hpp"
#include "lib/gni/domain/privileged.hpp"
#include "lib/gni/raw_value.hpp"
#include "lib/gni/status.hpp"

#include <algorithm>
#include <optional>
#include <vector>

// Questions about the device. There is one, which is the process's own, an Aries unless ORRERY_DEVICE says
// otherwise; its tables have the sizes that the emulated NIC has.
namespace orrery::gni {

namespace {

constexpr int kDevices = 1;

struct Amount {
  std::uint64_t used = 0;
  std::uint64_t total = 0;
};

// ERROR_RESOURCE: named, but not there, for there are no page tables or blocks of the device's own.
gni_return_t of_unknown(std::uint32_t resource, std::uint32_t last) {
  return resource > 0 && resource < last ? GNI_RC_ERROR_RESOURCE : GNI_RC_INVALID_PARAM;
}

std::uint64_t taken_by_all(nic::Nic& nic, Resource resource) {
  std::uint64_t used = 0;
  for (std::uint32_t domain = 0; domain < job::layout::kMaxDomains; ++domain)
    used += nic.device().resources.taken(domain, resource);
  return used;
}

gni_return_t of_device(nic::Nic& nic, std::uint32_t resource, Amount* amount) {
  switch (resource) {
    case GNI_DEV_RES_MDD:
      *amount = {nic.regions().table().in_use(), nic.regions().table().capacity()};
      return GNI_RC_SUCCESS;
    case GNI_DEV_RES_CQ:
      *amount = {nic.queues().count(), nic::kMaxQueues};
      return GNI_RC_SUCCESS;
    case GNI_DEV_RES_FMA:
      *amount = {std::min<std::uint64_t>(taken_by_all(nic, Resource::fma), kFmaDescriptors), kFmaDescriptors};
      return GNI_RC_SUCCESS;
    case GNI_DEV_RES_CE: {
      if (nic.options().gemini) return GNI_RC_ERROR_RESOURCE;
      *amount = {taken_by_all(nic, Resource::ce), nic::kVces};
      return GNI_RC_SUCCESS;
    }
    default:
      return of_unknown(resource, GNI_DEV_RES_LAST);
  }
}

// Which of ours a job's resource is.
std::optional<Resource> resource_of(std::uint32_t resource) {
  switch (resource) {
    case GNI_JOB_RES_MDD:
    case GNI_JOB_RES_NONVMDH:
      return Resource::mdd;
    case GNI_JOB_RES_CQ:
      return Resource::cq;
    case GNI_JOB_RES_FMA:
    case GNI_JOB_RES_SFMA:
      return Resource::fma;
    case GNI_JOB_RES_RDMA:
      return Resource::bte;
    case GNI_JOB_RES_CE:
      return Resource::ce;
    default:
      return std::nullopt;
  }
}

// The job's domains of that tag; all of them for GNI_FIND_ALLOC_PTAG.
std::vector<job::DomainId> domains_of(const job::Job& job, std::uint8_t ptag) {
  std::vector<job::DomainId> found;
  const auto all = job.directory().domains();
  for (job::DomainId id = 0; id < all.size(); ++id) {
    if (ptag == GNI_FIND_ALLOC_PTAG || all[id].ptag == ptag) found.push_back(id);
  }
  return found;
}

}  // namespace

}  // namespace orrery::gni

using orrery::gni::raw_value;
using orrery::gni::return_of;

extern "C" {

gni_return_t GNI_GetNumLocalDevices(int* num_devices) {
  if (num_devices == nullptr) return GNI_RC_INVALID_PARAM;
  *num_devices = orrery::gni::kDevices;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetLocalDeviceIds(int len, int* device_ids) {
  if (len < 1 || device_ids == nullptr) return GNI_RC_INVALID_PARAM;
  device_ids[0] = 0;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetDeviceType(gni_nic_device_t* dev_type) {
  if (dev_type == nullptr) return GNI_RC_INVALID_PARAM;
  *dev_type = orrery::config::text("ORRERY_DEVICE") == "gemini" ? GNI_DEVICE_GEMINI : GNI_DEVICE_ARIES;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetDevResInfo(uint32_t device_id, gni_dev_res_t res_type, gni_dev_res_desc_t* res_desc) {
  if (res_desc == nullptr) return GNI_RC_INVALID_PARAM;
  if (device_id >= orrery::gni::kDevices) return GNI_RC_NO_MATCH;
  const auto runtime = orrery::nic::Runtime::of_process();
  if (!runtime.ok()) return return_of(runtime.code());
  orrery::gni::Amount amount;
  const gni_return_t found = orrery::gni::of_device(runtime.value()->nic(), raw_value(res_type), &amount);
  if (found != GNI_RC_SUCCESS) return found;
  *res_desc = {.available = amount.total - amount.used, .reserved = 0, .held = 0, .total = amount.total};
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetJobResInfo(uint32_t device_id, uint8_t ptag, gni_job_res_t res_type,
                               gni_job_res_desc_t* res_desc) {
  if (res_desc == nullptr) return GNI_RC_INVALID_PARAM;
  if (device_id >= orrery::gni::kDevices) return GNI_RC_NO_MATCH;
  const auto resource = orrery::gni::resource_of(raw_value(res_type));
  if (!resource) return orrery::gni::of_unknown(raw_value(res_type), GNI_JOB_RES_LAST);
  const auto runtime = orrery::nic::Runtime::of_process();
  if (!runtime.ok()) return return_of(runtime.code());
  orrery::nic::Nic& nic = runtime.value()->nic();
  const orrery::job::Job& job = runtime.value()->job();
  if (*resource == orrery::gni::Resource::ce && nic.options().gemini) return GNI_RC_ERROR_RESOURCE;
  const auto domains = orrery::gni::domains_of(job, ptag);
  if (domains.empty()) return GNI_RC_NO_MATCH;
  orrery::gni::Amount amount{0, orrery::gni::device_total(*resource)};
  for (const auto domain : domains) {
    amount.used += nic.device().resources.taken(domain, *resource);
    const std::uint64_t most = orrery::gni::limit_of(nic, job.directory(), domain, *resource);
    amount.total = std::min(amount.total, most);
  }
  // Descriptors of the engine have no owner until a transfer has one.
  if (*resource == orrery::gni::Resource::bte) amount.used = nic.router().bte().outstanding();
  *res_desc = {.used = amount.used, .limit = amount.total};
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_SetJobResInfo(uint32_t device_id, uint8_t ptag, gni_job_res_t res_type, uint64_t res_value) {
  const auto resource = orrery::gni::resource_of(raw_value(res_type));
  if (!resource) return orrery::gni::of_unknown(raw_value(res_type), GNI_JOB_RES_LAST);
  if (device_id >= orrery::gni::kDevices) return GNI_RC_NO_MATCH;
  if (res_value > orrery::gni::device_total(*resource)) return GNI_RC_INVALID_PARAM;
  if (!orrery::gni::is_privileged()) return GNI_RC_PERMISSION_ERROR;
  const auto job = orrery::job::Job::of_process();
  if (!job.ok()) return return_of(job.code());
  const auto domains = orrery::gni::domains_of(*job.value(), ptag);
  if (domains.empty()) return GNI_RC_NO_MATCH;
  for (const auto domain : domains)
    job.value()->directory().set_limit(domain, *resource, static_cast<std::uint32_t>(res_value));
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetNttGran(uint32_t device_id, uint32_t* ntt_gran) {
  if (ntt_gran == nullptr) return GNI_RC_INVALID_PARAM;
  if (device_id >= orrery::gni::kDevices) return GNI_RC_NO_MATCH;
  *ntt_gran = 1;  // PE addresses are node addresses: one node per entry
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetPtag(uint32_t device_id, uint32_t cookie, uint8_t* ptag) {
  if (ptag == nullptr) return GNI_RC_INVALID_PARAM;
  if (device_id >= orrery::gni::kDevices) return GNI_RC_NO_MATCH;
  const auto job = orrery::job::Job::of_process();
  if (!job.ok()) return return_of(job.code());
  const auto found = job.value()->find_ptag(cookie);
  if (!found.ok()) return return_of(found.code());
  *ptag = found.value();
  return GNI_RC_SUCCESS;
}

}  // extern "C"
