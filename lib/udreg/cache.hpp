// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "include/udreg/udreg_pub.h"

#include <array>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>

// One cache of registrations. Owns its entries, not their memory.
//
// Threads: any. The owner's functions are called under the cache's lock and must not call back.
// Invariants: (1) at most max_entries entries; (2) an entry that is in use is registered; (3) entries stand
// in the order of their last use, the latest first; (4) a cache that has ended has no entries and takes none,
// though a thread that found it before may still hold it.
namespace orrery::udreg {

class Cache {
 public:
  explicit Cache(const udreg_cache_attr_t& attr) : attr_(attr), name_(attr.cache_name) {}
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  const std::string& name() const { return name_; }
  // Deregisters everything, for good. False, and nothing happened: an entry is in use.
  bool end();
  udreg_return_t take(std::uint64_t address, std::uint64_t length, udreg_entry_t** entry);
  udreg_return_t give(udreg_entry_t* entry, bool keep);
  udreg_return_t evict();
  bool reset(std::uint32_t which);
  bool stat(std::uint32_t which, std::uint64_t* value);

  int accesses = 0;  // guarded by the registry's lock

 private:
  // The client's part is first, so that its address is the entry's.
  struct Entry {
    udreg_entry_t shown{};
    std::uint32_t users = 0;
  };
  bool evict_one();
  void drop(std::list<Entry>::iterator entry);

  const udreg_cache_attr_t attr_;
  const std::string name_;
  std::mutex mu_;
  bool ended_ = false;                       // guarded by mu_
  std::list<Entry> entries_;                 // guarded by mu_
  std::array<std::uint64_t, 3> counters_{};  // guarded by mu_
};

}  // namespace orrery::udreg
