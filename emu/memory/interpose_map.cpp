// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
// Calls that take memory away or put other memory in its place. Exported by liborrery.so so that they come
// before libc's. They free file pages of adopted ranges at once; where a call is not seen, reap() finds the
// pages later. They also tell the listener before pages go away (unmapping.hpp). Peers may reach memory that
// no key names only where it cannot go away without such a call; told_around() finds it by what these calls
// noted. Apart from interpose_advise.cpp so that a sanitizer's own versions are not replaced in programs that
// link the archive.
#include "emu/memory/process_state.hpp"
#include "emu/memory/raw_calls.hpp"
#include "emu/memory/unmapping.hpp"

#include <cstdint>

#include <sys/mman.h>

namespace orrery::memory {

namespace {

// Empty for what the kernel refuses anyway.
Range range_of(const void* at, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uint64_t>(at);
  if (bytes == 0 || bytes > AddressSpace::kSpan || begin > UINT64_MAX - bytes - kPageBytes) return {};
  return page_hull({begin, begin + bytes});
}

ProcessState* state_if_adopted(Range range) {
  ProcessState* const state = current_state();
  if (state == nullptr || range.empty() || state->in_child()) return nullptr;
  return state->extents.may_overlap(range) ? state : nullptr;
}

}  // namespace

}  // namespace orrery::memory

extern "C" {

int munmap(void* at, std::size_t bytes) noexcept {
  using namespace orrery::memory;
  const Range range = range_of(at, bytes);
  const Unmapping unmapping(range);
  ProcessState* const state = state_if_adopted(range);
  if (state == nullptr) {
    const int result = raw::munmap(at, bytes);
    if (result == 0) note_unmapped(range);
    return result;
  }
  // Under the lock from the call to the emptying: an adoption of what is mapped here next must come after.
  const QuietTable lock(*state, range);
  const int result = raw::munmap(at, bytes);
  if (result == 0) forget_extents(*state, range);
  if (result == 0) note_unmapped(range);
  return result;
}

void* mmap(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  using namespace orrery::memory;
  const Range range = (flags & MAP_FIXED) != 0 ? range_of(at, bytes) : Range{};
  const Unmapping unmapping(range);
  ProcessState* const state = state_if_adopted(range);
  if (state == nullptr) {
    void* const result = raw::mmap(at, bytes, protection, flags, file, static_cast<std::uint64_t>(offset));
    if (result != MAP_FAILED) note_mapped(range_of(result, bytes));
    return result;
  }
  const QuietTable lock(*state, range);
  void* const result = raw::mmap(at, bytes, protection, flags, file, static_cast<std::uint64_t>(offset));
  if (result != MAP_FAILED) {
    forget_extents(*state, range);
    note_mapped(range);
  }
  return result;
}

void* mmap64(void* at, std::size_t bytes, int protection, int flags, int file, off64_t offset) noexcept {
  return mmap(at, bytes, protection, flags, file, offset);
}

}  // extern "C"
