// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/shmem/team.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace orrery::shmem {

// Contexts by their handles, which name a place and how often it was given: a handle that no call gave, or
// whose context is destroyed, names none. Threads: any, at the same time.
//
//   handle: 63..20 generation, from 1 on | 19..0 place
class ContextTable {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 20;

  // SHMEM_CTX_INVALID: kMost of them exist.
  shmem_ctx_t make(Team* team, long options) {
    const std::lock_guard lock(mu_);
    std::size_t place = used_;
    if (!free_.empty()) {
      place = free_.back();
      free_.pop_back();
    } else if (used_ == kMost) {
      return SHMEM_CTX_INVALID;
    } else if (used_++ % kChunk == 0) {
      storage_.push_back(std::make_unique<Chunk>());
      // Release: a reader finds its entries empty.
      chunks_[place / kChunk].store(storage_.back().get(), std::memory_order_release);
    }
    Entry& entry = at(place);
    entry.context = {.team = team, .options = options};
    const std::uint64_t handle = ++entry.generation << kPlaceBits | place;
    entry.handle.store(handle, std::memory_order_release);
    return reinterpret_cast<shmem_ctx_t>(handle);
  }

  // Null: the handle names none.
  Context* find(shmem_ctx_t ctx) {
    const auto handle = reinterpret_cast<std::uint64_t>(ctx);
    const std::size_t place = handle & (kMost - 1);
    Chunk* const chunk = chunks_[place / kChunk].load(std::memory_order_acquire);
    if (chunk == nullptr) return nullptr;
    Entry& entry = (*chunk)[place % kChunk];
    return handle >= kMost && entry.handle.load(std::memory_order_acquire) == handle ? &entry.context
                                                                                     : nullptr;
  }

  void destroy(shmem_ctx_t ctx) {
    const std::lock_guard lock(mu_);
    if (find(ctx) == nullptr) return;
    const std::size_t place = reinterpret_cast<std::uint64_t>(ctx) & (kMost - 1);
    at(place).handle.store(0, std::memory_order_release);
    free_.push_back(place);
  }

 private:
  static constexpr unsigned kPlaceBits = 20;
  static constexpr std::size_t kChunk = 256;
  struct Entry {
    std::atomic<std::uint64_t> handle{0};  // 0: free
    std::uint64_t generation = 0;          // guarded by mu_
    Context context;                       // constant while the handle is there
  };
  using Chunk = std::array<Entry, kChunk>;

  Entry& at(std::size_t place) { return (*storage_[place / kChunk])[place % kChunk]; }

  std::mutex mu_;
  std::size_t used_ = 0;                         // guarded by mu_
  std::vector<std::size_t> free_;                // guarded by mu_
  std::vector<std::unique_ptr<Chunk>> storage_;  // guarded by mu_
  std::array<std::atomic<Chunk*>, kMost / kChunk> chunks_{};
};

}  // namespace orrery::shmem
