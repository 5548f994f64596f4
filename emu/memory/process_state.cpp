// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/process_state.hpp"

#include "emu/memory/raw_calls.hpp"

#include <algorithm>
#include <new>

namespace orrery::memory {

HandlerPage g_handler_page;

namespace {

std::uint64_t round_to_page(std::uint64_t bytes) { return page_hull({0, bytes}).end; }

bool active_overlaps(const ProcessState& state, Range range) {
  // The sequence is read by the caller before and waited on after: a switch that begins in between is seen
  // next time.
  const Range active{state.active_begin.load(std::memory_order_relaxed),
                     state.active_end.load(std::memory_order_relaxed)};
  return active.overlaps(range);
}

}  // namespace

ProcessState* make_state(std::uint32_t extents) {
  // Mark, state, two extent tables, live ranges (at most two per extent and some strays).
  const std::uint64_t state_bytes = round_to_page(sizeof(ProcessState));
  const std::uint64_t table_bytes = round_to_page(std::uint64_t{extents} * sizeof(Extent));
  const std::uint64_t live_count = std::uint64_t{extents} * 4 + 1024;
  const std::uint64_t total =
      kPageBytes + state_bytes + 2 * table_bytes + round_to_page(live_count * sizeof(Range));
  void* const block =
      raw::mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) return nullptr;
  auto* const bytes = static_cast<std::byte*>(block);
  auto* const table = reinterpret_cast<Extent*>(bytes + kPageBytes + state_bytes);
  auto* const fork_table = reinterpret_cast<Extent*>(bytes + kPageBytes + state_bytes + table_bytes);
  auto* const live = reinterpret_cast<Range*>(bytes + kPageBytes + state_bytes + 2 * table_bytes);
  auto* const state = new (bytes + kPageBytes)
      ProcessState({table, extents}, {fork_table, extents}, {live, static_cast<std::size_t>(live_count)});
  const auto begin = reinterpret_cast<std::uint64_t>(block);
  state->own = {begin, begin + total};
  auto* const mark = new (block) std::uint32_t{1};
  raw::madvise(begin, kPageBytes, MADV_WIPEONFORK);
  state->parent_mark = mark;
  return state;
}

void destroy_state(ProcessState* state) {
  const Range own = state->own;
  state->~ProcessState();
  raw::munmap(raw::pointer(own.begin), own.size());
}

void await_switch(ProcessState& state, Range range) {
  for (;;) {
    const std::uint32_t sequence = state.sequence.load(std::memory_order_acquire);
    if ((sequence & 1) == 0 || !active_overlaps(state, range)) return;
    futex_wait(state.sequence, sequence, std::nullopt);
  }
}

QuietTable::QuietTable(ProcessState& state, Range range) : state_(state) {
  for (;;) {
    await_switch(state_, range);
    state_.table.lock();
    // A switch begins under the table lock: what is quiet now stays so until we unlock.
    if ((state_.sequence.load(std::memory_order_acquire) & 1) == 0 || !active_overlaps(state_, range)) return;
    state_.table.unlock();
  }
}

void forget_extents(ProcessState& state, Range range) {
  for (const Extent& extent : state.extents.all()) {
    const Range part{std::max(extent.range.begin, range.begin), std::min(extent.range.end, range.end)};
    if (part.empty()) continue;
    raw::punch(state.file, part);
    state.bytes_punched.fetch_add(part.size(), std::memory_order_relaxed);
  }
  state.extents.erase(range);
}

}  // namespace orrery::memory
