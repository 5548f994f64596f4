// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
// Calls that take memory away or put other memory in its place. Exported by liborrery.so so that they come
// before libc's: file pages of adopted ranges are freed at once. Nothing depends on it for being right:
// inspect() asks the kernel, reap() finds what was missed. Apart from interpose_advise.cpp so that a
// sanitizer's own versions are not replaced in programs that link the archive.
#include "emu/memory/process_state.hpp"
#include "emu/memory/raw_calls.hpp"

#include <sys/mman.h>

namespace orrery::memory {

namespace {

ProcessState* state_if_adopted(const void* at, std::size_t bytes) {
  ProcessState* const state = current_state();
  if (state == nullptr || bytes == 0 || state->in_child()) return nullptr;
  const auto begin = reinterpret_cast<std::uint64_t>(at);
  return begin + bytes >= begin && state->extents.may_overlap({begin, begin + bytes}) ? state : nullptr;
}

}  // namespace

}  // namespace orrery::memory

extern "C" {

int munmap(void* at, std::size_t bytes) noexcept {
  using namespace orrery::memory;
  ProcessState* const state = state_if_adopted(at, bytes);
  if (state == nullptr) return raw::munmap(at, bytes);
  const auto begin = reinterpret_cast<std::uint64_t>(at);
  const Range range = page_hull({begin, begin + bytes});
  // Under the lock from the call to the emptying: an adoption of what is mapped here next must come after.
  const QuietTable lock(*state, range);
  const int result = raw::munmap(at, bytes);
  if (result == 0) forget_extents(*state, range);
  return result;
}

void* mmap(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  using namespace orrery::memory;
  ProcessState* const state = (flags & MAP_FIXED) != 0 ? state_if_adopted(at, bytes) : nullptr;
  if (state == nullptr)
    return raw::mmap(at, bytes, protection, flags, file, static_cast<std::uint64_t>(offset));
  const auto begin = reinterpret_cast<std::uint64_t>(at);
  const Range range = page_hull({begin, begin + bytes});
  const QuietTable lock(*state, range);
  void* const result = raw::mmap(at, bytes, protection, flags, file, static_cast<std::uint64_t>(offset));
  if (result != MAP_FAILED) forget_extents(*state, range);
  return result;
}

void* mmap64(void* at, std::size_t bytes, int protection, int flags, int file, off64_t offset) noexcept {
  return mmap(at, bytes, protection, flags, file, offset);
}

}  // extern "C"
