// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstddef>
#include <cstdint>

namespace orrery::nic {

// A stretch of some process's virtual addresses as this process can touch it.
struct Run {
  std::uint64_t begin = 0;  // virtual addresses of the owner
  std::uint64_t end = 0;
  std::byte* here = nullptr;  // where `begin` is mapped in this process

  bool holds(std::uint64_t address, std::uint64_t length) const {
    return address >= begin && address < end && length <= end - address;
  }
  // By integers: the identity's `here` is null.
  std::byte* at(std::uint64_t address) const {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(here) + (address - begin));
  }
};

// Where a process's memory is mapped here. Implemented by the memory file's windows for a peer, and by the
// identity for our own process (and for NICs that share one process: both sides then use one address for one
// byte, so that ThreadSanitizer sees their races).
class AddressMap {
 public:
  virtual ~AddressMap() = default;
  // The run around `address`; `here` is nullptr when it cannot be mapped. Thread-safe.
  virtual Run find(std::uint64_t address) = 0;
};

class IdentityMap final : public AddressMap {
 public:
  Run find(std::uint64_t) override { return whole(); }
  static Run whole() { return {0, UINT64_MAX, nullptr}; }
};

}  // namespace orrery::nic
