// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
// Calls whose effect on shared file pages differs from that on private memory, made to do what the program
// expects of its own. Exported by liborrery.so before libc's.
#include "emu/memory/process_state.hpp"
#include "emu/memory/raw_calls.hpp"
#include "emu/memory/unmapping.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>

#include <sys/mman.h>

namespace orrery::memory {

namespace {

void note_pin(ProcessState& state, Range range) {
  const std::lock_guard lock(state.table);
  const std::uint32_t count = state.pin_count.load(std::memory_order_relaxed);
  state.pins[count % state.pins.size()] = range;
  state.pin_count.store(count + 1, std::memory_order_relaxed);
}

void forget_pins(ProcessState& state, Range range) {
  const std::lock_guard lock(state.table);
  for (Range& pin : state.pins)
    if (pin.overlaps(range)) pin = {};
}

// Moves an adopted block to fresh private memory, as mremap would have moved a private one.
void* move_out(ProcessState& state, Range from, std::uint64_t new_bytes, int flags, void* to) {
  const std::uint64_t size = page_hull({0, new_bytes}).end;
  if (size <= from.size() && (flags & MREMAP_FIXED) == 0) {
    const Range tail{from.begin + size, from.end};
    if (!tail.empty()) {
      const Unmapping unmapping(tail);
      const QuietTable lock(state, tail);
      raw::munmap(raw::pointer(tail.begin), tail.size());
      forget_extents(state, tail);
      note_unmapped(tail);
    }
    return raw::pointer(from.begin);
  }
  if ((flags & MREMAP_MAYMOVE) == 0) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  // Through libc's name: a target that is adopted itself is forgotten on the way.
  void* const block =
      ::mmap((flags & MREMAP_FIXED) != 0 ? to : nullptr, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | ((flags & MREMAP_FIXED) != 0 ? MAP_FIXED : 0), -1, 0);
  if (block == MAP_FAILED) return MAP_FAILED;
  std::memcpy(block, raw::pointer(from.begin), std::min(size, from.size()));
  ::munmap(raw::pointer(from.begin), from.size());
  return block;
}

// Of pages that are not in the file. What lies at the target goes the way that munmap(2) does.
void* move_plain(void* from, Range old_range, std::size_t new_bytes, int flags, void* to) {
  if ((flags & MREMAP_FIXED) != 0 && new_bytes != 0 && new_bytes < AddressSpace::kSpan)
    ::munmap(to, new_bytes);
  const Unmapping unmapping(old_range);
  void* const moved = raw::mremap(from, old_range.size(), new_bytes, flags, to);
  if (moved == MAP_FAILED) return moved;
  note_unmapped(old_range);
  const auto begin = reinterpret_cast<std::uint64_t>(moved);
  note_mapped(page_hull({begin, begin + new_bytes}));
  return moved;
}

}  // namespace

}  // namespace orrery::memory

extern "C" {

int madvise(void* at, std::size_t bytes, int advice) noexcept {
  using namespace orrery::memory;
  ProcessState* const state = current_state();
  const auto begin = reinterpret_cast<std::uint64_t>(at);
  if (state == nullptr || bytes == 0 || begin + bytes < begin || state->in_child())
    return raw::madvise(begin, bytes, advice);
  const Range range = page_hull({begin, begin + bytes});
  if (advice == MADV_DONTFORK) note_pin(*state, range);
  if (advice == MADV_DOFORK) forget_pins(*state, range);
  if (!state->extents.may_overlap(range)) return raw::madvise(begin, bytes, advice);

  const QuietTable lock(*state, range);
  if (!state->extents.overlaps(range)) return raw::madvise(begin, bytes, advice);
  switch (advice) {
    case MADV_DONTNEED:
    case MADV_FREE: {  // would be refused on a shared page; giving zeros at once is one of its outcomes
      const int result = raw::madvise(begin, bytes, MADV_DONTNEED);
      if (result != 0) return result;
      for (const Extent& extent : state->extents.all()) {
        const Range part{std::max(extent.range.begin, range.begin), std::min(extent.range.end, range.end)};
        if (!part.empty()) raw::punch(state->file, part);
      }
      return 0;
    }
    case MADV_DOFORK:  // children get their snapshot anyway; shared pages they must not have
      return 0;
    default:
      return raw::madvise(begin, bytes, advice);
  }
}

void* mremap(void* from, std::size_t old_bytes, std::size_t new_bytes, int flags, ...) noexcept {
  using namespace orrery::memory;
  void* to = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list rest;
    va_start(rest, flags);
    to = va_arg(rest, void*);
    va_end(rest);
  }
  ProcessState* const state = current_state();
  const auto begin = reinterpret_cast<std::uint64_t>(from);
  const Range range = page_hull({begin, begin + old_bytes});
  if (state == nullptr || old_bytes == 0 || begin % kPageBytes != 0 || range.empty() || state->in_child())
    return raw::mremap(from, old_bytes, new_bytes, flags, to);
  bool adopted = false;
  if (state->extents.may_overlap(range)) {
    const QuietTable lock(*state, range);
    adopted = state->extents.overlaps(range);
  }
  if (!adopted) return move_plain(from, range, new_bytes, flags, to);
  if (new_bytes > AddressSpace::kSpan) {  // rounded up to pages it may wrap to nothing at all
    errno = ENOMEM;
    return MAP_FAILED;
  }
  if ((flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) != 0 || new_bytes == 0) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  return move_out(*state, range, new_bytes, flags, to);
}

}  // extern "C"
