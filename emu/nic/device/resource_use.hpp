// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/job/host_directory_layout.hpp"
#include "emu/job/resource_limits.hpp"

#include <array>
#include <atomic>
#include <cstdint>

// How much of a NIC's resources each domain has taken. The API layer takes and gives back: it knows
// what a limit of its interface counts.
//
// Threads: any. Invariant: what was taken under a limit was below it at that moment.
// Usage: if (use.take(domain, job::Resource::mdd, most)) ...  use.give(domain, job::Resource::mdd);
namespace orrery::nic {

class ResourceUse {
 public:
  // Takes one if fewer than `most` are taken. REQUIRES: domain < kMaxDomains.
  bool take(std::uint32_t domain, job::Resource resource, std::uint64_t most) {
    std::atomic<std::uint32_t>& count = at(domain, resource);
    std::uint32_t seen = count.load(std::memory_order_relaxed);
    do {
      if (seen >= most) return false;
    } while (!count.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed));
    return true;
  }
  void give(std::uint32_t domain, job::Resource resource) {
    at(domain, resource).fetch_sub(1, std::memory_order_relaxed);
  }
  std::uint32_t taken(std::uint32_t domain, job::Resource resource) const {
    return counts_[domain][static_cast<std::size_t>(resource)].load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t>& at(std::uint32_t domain, job::Resource resource) {
    return counts_[domain][static_cast<std::size_t>(resource)];
  }
  std::array<std::array<std::atomic<std::uint32_t>, job::kResources>, job::layout::kMaxDomains> counts_{};
};

}  // namespace orrery::nic
