// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/portals3/sources.hpp"

#include "lib/portals3/process.hpp"

#include <cstring>

namespace orrery::portals3 {

void Sources::keep(ptl_handle_md_t md, const classic::Memory& memory) {
  const std::uint32_t index = open_handle(md).index;
  const std::lock_guard lock(lock_);
  const bool hears_nothing = memory.threshold < 0 && memory.queue == 0 && memory.pieces == 0;
  if (index >= by_index_.size()) {
    if (!hears_nothing) return;
    by_index_.resize(index + 1);
  }
  by_index_[index] = hears_nothing ? Source{md, memory.start, memory.length} : Source{};
}

void Sources::forget(ptl_handle_md_t md) {
  const std::uint32_t index = open_handle(md).index;
  const std::lock_guard lock(lock_);
  if (index < by_index_.size()) by_index_[index] = {};
}

void Sources::forget_all() {
  const std::lock_guard lock(lock_);
  by_index_.clear();
}

bool Sources::copy(const Part& part, std::byte* to, ptl_size_t room, ptl_size_t* length) {
  const std::uint32_t index = open_handle(part.md).index;
  const std::lock_guard lock(lock_);
  if (index >= by_index_.size()) return false;
  const Source& source = by_index_[index];
  if (source.md != part.md || part.md == PTL_INVALID_HANDLE) return false;
  const ptl_size_t offset = part.whole ? 0 : part.offset;
  const ptl_size_t bytes = part.whole ? source.length : part.length;
  if (bytes > room || offset > source.length || bytes > source.length - offset) return false;
  std::memcpy(to, reinterpret_cast<const void*>(source.start + offset), bytes);
  *length = bytes;
  return true;
}

}  // namespace orrery::portals3
