// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/memory/range.hpp"

#include <cstdint>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// System calls that pass by every interceptor: ours (interpose_*.cpp) and those of ThreadSanitizer, which
// would forget what it knows of a range when it sees it mapped anew.
namespace orrery::memory::raw {

// MAP_FAILED on error, as mmap(2).
inline void* mmap(void* at, std::uint64_t bytes, int protection, int flags, int file, std::uint64_t offset) {
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}
inline int munmap(void* at, std::uint64_t bytes) {
  return static_cast<int>(::syscall(SYS_munmap, at, bytes));
}
inline int mprotect(std::uint64_t at, std::uint64_t bytes, int protection) {
  return static_cast<int>(::syscall(SYS_mprotect, at, bytes, protection));
}
inline int madvise(std::uint64_t at, std::uint64_t bytes, int advice) {
  return static_cast<int>(::syscall(SYS_madvise, at, bytes, advice));
}
inline void* mremap(void* from, std::uint64_t old_bytes, std::uint64_t new_bytes, int flags, void* to) {
  return reinterpret_cast<void*>(::syscall(SYS_mremap, from, old_bytes, new_bytes, flags, to));
}
inline std::int64_t pread(int file, void* to, std::uint64_t bytes, std::uint64_t offset) {
  return ::syscall(SYS_pread64, file, to, bytes, offset);
}
inline std::int64_t pwrite(int file, const void* from, std::uint64_t bytes, std::uint64_t offset) {
  return ::syscall(SYS_pwrite64, file, from, bytes, offset);
}
// Gives the file's pages of `range` (offset = address) back to the system; readers then see zeros.
inline int punch(int file, Range range) {
  return static_cast<int>(
      ::syscall(SYS_fallocate, file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, range.begin, range.size()));
}
inline void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace orrery::memory::raw
