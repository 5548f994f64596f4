// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/memory/range.hpp"

#include <cstdint>

namespace orrery::memory {

// One entry of the kernel's list of this process's mappings.
struct Mapping {
  Range range;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  bool huge_pages = false;   // hugetlb
  std::uint64_t offset = 0;  // of range.begin in its file
  std::uint64_t inode = 0;   // 0: anonymous
  std::uint32_t dev_major = 0;
  std::uint32_t dev_minor = 0;
  int protection() const;  // PROT_ bits
};

// Asks the kernel which mappings this process has: by PROCMAP_QUERY (Linux 6.11), else from /proc/self/maps.
// Allocates nothing, takes no lock. Threads: any. Owns a descriptor of /proc/self/maps; useless in a forked
// child. Use: Mapping m; if (query.find(address, &m)) ...
class MapQuery {
 public:
  MapQuery() = default;
  ~MapQuery() { close(); }
  MapQuery(const MapQuery&) = delete;
  MapQuery& operator=(const MapQuery&) = delete;

  // False: /proc is not there. `use_ioctl` false: behave as an older kernel.
  bool open(bool use_ioctl);
  void close();
  bool uses_ioctl() const { return ioctl_; }
  int descriptor() const { return file_; }

  // The mapping that contains `address`, or the next one above. False: none.
  bool find(std::uint64_t address, Mapping* out) const;

  // Calls visit(context, mapping) for every mapping that overlaps `range`, in order, until it returns false.
  // `files_only`: mappings of files are enough (lets the kernel skip the others).
  using Visit = bool (*)(void* context, const Mapping& mapping);
  void walk(Range range, bool files_only, Visit visit, void* context) const;

 private:
  bool ask_ioctl(std::uint64_t address, bool files_only, Mapping* out) const;

  int file_ = -1;
  bool ioctl_ = false;
};

}  // namespace orrery::memory
