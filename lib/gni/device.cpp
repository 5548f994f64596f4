// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/runtime.hpp"
#include "lib/gni/raw_value.hpp"
#include "lib/gni/status.hpp"

#include <algorithm>

// Questions about the device. There is one, an Aries, and its tables have the sizes that the emulated NIC
// has.
namespace orrery::gni {

namespace {

constexpr int kDevices = 1;
constexpr std::uint64_t kFmaDescriptors = 128;  // of one Aries NIC
constexpr std::uint64_t kBteDescriptors = nic::BteQueue::kCapacity;

struct Amount {
  std::uint64_t used = 0;
  std::uint64_t total = 0;
};

Amount registrations(nic::Nic& nic) { return {nic.registrations().in_use(), nic.registrations().capacity()}; }
Amount queues(nic::Nic& nic) { return {nic.queue_count(), nic::kMaxQueues}; }
Amount windows(nic::Nic& nic) {
  return {std::min<std::uint64_t>(nic.port_count(), kFmaDescriptors), kFmaDescriptors};
}

gni_return_t of_device(nic::Nic& nic, std::uint32_t resource, Amount* amount) {
  switch (resource) {
    case GNI_DEV_RES_MDD:
      *amount = registrations(nic);
      return GNI_RC_SUCCESS;
    case GNI_DEV_RES_CQ:
      *amount = queues(nic);
      return GNI_RC_SUCCESS;
    case GNI_DEV_RES_FMA:
      *amount = windows(nic);
      return GNI_RC_SUCCESS;
    default:
      // Named, but not there: no page tables or engines of the device's own.
      return resource > GNI_DEV_RES_FIRST && resource < GNI_DEV_RES_LAST ? GNI_RC_ERROR_RESOURCE
                                                                         : GNI_RC_INVALID_PARAM;
  }
}

gni_return_t of_job(nic::Nic& nic, std::uint32_t resource, Amount* amount) {
  switch (resource) {
    case GNI_JOB_RES_MDD:
    case GNI_JOB_RES_NONVMDH:
      *amount = registrations(nic);
      return GNI_RC_SUCCESS;
    case GNI_JOB_RES_CQ:
      *amount = queues(nic);
      return GNI_RC_SUCCESS;
    case GNI_JOB_RES_FMA:
    case GNI_JOB_RES_SFMA:
      *amount = windows(nic);
      return GNI_RC_SUCCESS;
    case GNI_JOB_RES_RDMA:
      *amount = {nic.block_transfers(), kBteDescriptors};
      return GNI_RC_SUCCESS;
    default:
      return resource > GNI_JOB_RES_FIRST && resource < GNI_JOB_RES_LAST ? GNI_RC_ERROR_RESOURCE
                                                                         : GNI_RC_INVALID_PARAM;
  }
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
  *dev_type = GNI_DEVICE_ARIES;
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

gni_return_t GNI_GetJobResInfo(uint32_t device_id, uint8_t /*ptag*/, gni_job_res_t res_type,
                               gni_job_res_desc_t* res_desc) {
  if (res_desc == nullptr) return GNI_RC_INVALID_PARAM;
  if (device_id >= orrery::gni::kDevices) return GNI_RC_NO_MATCH;
  const auto runtime = orrery::nic::Runtime::of_process();
  if (!runtime.ok()) return return_of(runtime.code());
  orrery::gni::Amount amount;
  const gni_return_t found = orrery::gni::of_job(runtime.value()->nic(), raw_value(res_type), &amount);
  if (found != GNI_RC_SUCCESS) return found;
  *res_desc = {.used = amount.used, .limit = amount.total};
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
