// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/common/sign_on.hpp"

#include <algorithm>
#include <cstdint>

// What a domain may have of its process's NIC, and has. The device is the process's own, so what is counted
// for a job on it is what this process's ports of that domain hold.
namespace orrery::common {

using job::Resource;

inline constexpr std::uint32_t kFmaDescriptors = 128;  // of one Aries NIC
inline constexpr std::uint32_t kBteDescriptors = nic::BteQueue::kCapacity;

// What the device has of a resource.
constexpr std::uint32_t device_total(Resource resource) {
  switch (resource) {
    case Resource::mdd:
      return nic::kMaxRegions;
    case Resource::cq:
      return nic::kMaxQueues;
    case Resource::fma:
      return kFmaDescriptors;
    case Resource::ce:
      return nic::kVces;
    case Resource::bte:
      break;
  }
  return kBteDescriptors;
}

// The lowest of what the device has, ORRERY_LIMITS says and the job was configured with.
inline std::uint32_t limit_of(nic::Nic& nic, const job::HostDirectory& directory, job::DomainId domain,
                              Resource resource) {
  std::uint32_t most = device_total(resource);
  if (const auto& ours = nic.options().limits[static_cast<std::size_t>(resource)])
    most = std::min(most, *ours);
  if (const auto jobs = directory.limit_of(domain, resource)) most = std::min(most, *jobs);
  return most;
}
inline std::uint32_t limit_of(const SignOn& signed_on, Resource resource) {
  return limit_of(*signed_on.nic, signed_on.job->directory(), signed_on.port->domain, resource);
}

// Takes one; false when its domain has all that it may have.
inline bool take(const SignOn& signed_on, Resource resource) {
  return signed_on.nic->device().resources.take(signed_on.port->domain, resource,
                                                limit_of(signed_on, resource));
}
inline void give(const SignOn& signed_on, Resource resource) {
  signed_on.nic->device().resources.give(signed_on.port->domain, resource);
}

}  // namespace orrery::common
