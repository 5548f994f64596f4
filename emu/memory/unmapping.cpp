// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/unmapping.hpp"

#include "emu/base/wait.hpp"
#include "emu/memory/extent_table.hpp"
#include "emu/memory/process_state.hpp"
#include "emu/memory/thread_areas.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <shared_mutex>

#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

namespace orrery::memory {

namespace {

constexpr std::int64_t kAnnounceNs = 10'000'000;  // how long a move waits for calls that are under way
constexpr std::size_t kMostMappings = 4096;

std::atomic<UnmapListener*> g_listener{nullptr};
// Held shared by calls that take away pages of which the listener is not told, and alone for a moment to
// announce a move.
constinit std::shared_mutex g_gate;
std::atomic<std::uint64_t> g_moving_begin{0};
std::atomic<std::uint64_t> g_moving_end{0};

// Before main(): the first mappings of a program are noted too.
constinit std::mutex g_mapped_mu;
constinit std::array<Extent, kMostMappings> g_mapped_storage{};
ExtentTable& mapped() {
  static constinit ExtentTable table(g_mapped_storage);
  return table;
}

// A child of fork finds the lock free.
__attribute__((constructor)) void keep_lock_through_fork() {
  pthread_atfork([] { g_mapped_mu.lock(); }, [] { g_mapped_mu.unlock(); }, [] { g_mapped_mu.unlock(); });
}

// The main program's writable data: it stays to the end.
Range program_data() {
  static const Range data = [] {
    Range found;
    dl_iterate_phdr(
        [](dl_phdr_info* module, std::size_t, void* context) {
          for (int i = 0; i < module->dlpi_phnum; ++i) {
            const auto& header = module->dlpi_phdr[i];
            if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0) continue;
            const std::uint64_t begin = module->dlpi_addr + header.p_vaddr;
            *static_cast<Range*>(context) = page_hull({begin, begin + header.p_memsz});
          }
          return 1;  // the first is the main program
        },
        &found);
    return found;
  }();
  return data;
}

// Between these the heap grows and shrinks. libc's allocator is told not to shrink it by itself.
Range heap() {
  static const std::uint64_t begin = heap_begin();
  const auto end = reinterpret_cast<std::uint64_t>(sbrk(0));
  return begin == 0 || end <= begin ? Range{}
                                    : Range{page_hull({begin, begin}).begin, end & ~(kPageBytes - 1)};
}

}  // namespace

void set_unmap_listener(UnmapListener* listener) {
  if (listener != nullptr) mallopt(M_TRIM_THRESHOLD, -1);
  g_listener.store(listener, std::memory_order_seq_cst);
}

bool announce_move(Range range) {
  const std::int64_t deadline = monotonic_ns() + kAnnounceNs;
  while (!g_gate.try_lock()) {
    if (monotonic_ns() > deadline) return false;
    yield_cpu();
  }
  g_moving_begin.store(range.begin, std::memory_order_relaxed);
  g_moving_end.store(range.end, std::memory_order_relaxed);
  g_gate.unlock();
  return true;
}

Unmapping::Unmapping(Range range) {
  UnmapListener* const listener = g_listener.load(std::memory_order_acquire);
  if (listener == nullptr || range.empty()) [[likely]]
    return;
  ProcessState* const state = current_state();
  if (state == nullptr || state->in_child()) return;
  g_gate.lock_shared();
  const Range moving{g_moving_begin.load(std::memory_order_relaxed),
                     g_moving_end.load(std::memory_order_relaxed)};
  if (!moving.overlaps(range) && !state->extents.may_overlap(range)) {
    shared_ = true;
    return;
  }
  g_gate.unlock_shared();
  told_ = listener;
  token_ = listener->before(range);
}

Unmapping::~Unmapping() {
  if (shared_) g_gate.unlock_shared();
  if (told_ != nullptr) told_->after(token_);
}

void note_mapped(Range range) {
  const std::lock_guard lock(g_mapped_mu);
  if (mapped().count() + 2 < kMostMappings) mapped().insert({.range = range});
}

void note_unmapped(Range range) {
  const std::lock_guard lock(g_mapped_mu);
  // Without room for two parts of one it is taken out whole.
  if (!mapped().erase(range)) {
    for (const Extent& extent : mapped().all()) {
      if (!extent.range.overlaps(range)) continue;
      mapped().erase(extent.range);
      break;
    }
  }
}

Range told_around(std::uint64_t address) {
  {
    const std::lock_guard lock(g_mapped_mu);
    for (const Extent& extent : mapped().all())
      if (extent.range.contains(address)) return extent.range;
  }
  for (const Range range : {program_data(), heap()})
    if (range.contains(address)) return range;
  return {};
}

}  // namespace orrery::memory
