// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/log.hpp"
#include "lib/shmem/job.hpp"
#include "lib/shmem/profiling.hpp"

#include "include/shmem/shmemx.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

// The symmetric heap. Blocks are DMAPP's; one with an alignment of its own lies within a larger one.
namespace orrery::shmem {

namespace {

constexpr std::size_t kAligned = 64;  // as DMAPP gives them

std::mutex g_mu;
// By the address that was given out, DMAPP's block that it lies in: at its begin, unless it has an alignment
// of its own. Guarded by g_mu.
std::map<void*, void*> g_outer;

void* allocate(std::size_t size) {
  void* const block = dmapp_sheap_malloc(size);
  if (block != nullptr) {
    const std::lock_guard lock(g_mu);
    g_outer[block] = block;
  }
  return block;
}

bool is_block(void* block) {
  const std::lock_guard lock(g_mu);
  return g_outer.find(block) != g_outer.end();
}

// The block with what it held, where it is or elsewhere; null, and it is left as it was: no room.
void* resize(void* block, std::size_t size) {
  const std::lock_guard lock(g_mu);
  const auto found = g_outer.find(block);
  if (found == g_outer.end()) return nullptr;
  void* const outer = found->second;
  const auto before =
      static_cast<std::size_t>(static_cast<std::byte*>(block) - static_cast<std::byte*>(outer));
  std::size_t bytes = 0;
  if (__builtin_add_overflow(before, size, &bytes)) bytes = SIZE_MAX;  // which DMAPP refuses
  void* const now = dmapp_sheap_realloc(outer, bytes);
  if (now == nullptr) return nullptr;
  g_outer.erase(found);
  void* const given = static_cast<std::byte*>(now) + before;
  g_outer[given] = now;
  return given;
}

void release(void* block) {
  void* outer = block;
  {
    const std::lock_guard lock(g_mu);
    if (const auto found = g_outer.find(block); found != g_outer.end()) {
      outer = found->second;
      g_outer.erase(found);
    }
  }
  dmapp_sheap_free(outer);
}

// Between an allocation and its use no PE may write to a block that another one has not been given yet.
void* given(void* block) {
  shmem_barrier_all();
  return block;
}

}  // namespace
}  // namespace orrery::shmem

using orrery::shmem::must_be_up;

extern "C" {

SHMEM_NAMES_MEMORY_(ORRERY_PROFILED)

void* shmem_malloc(size_t size) {
  must_be_up("shmem_malloc");
  if (size == 0) return nullptr;
  return orrery::shmem::given(orrery::shmem::allocate(size));
}

void* shmem_malloc_with_hints(size_t size, long hints) {
  must_be_up("shmem_malloc_with_hints");
  if ((hints & ~(SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE | SHMEMX_MALLOC_NO_BARRIER)) != 0)
    orrery::log::warn("shmem_malloc_with_hints: hints {:#x} have bits that mean nothing", hints);
  if (size == 0) return nullptr;
  void* const block = orrery::shmem::allocate(size);
  return (hints & SHMEMX_MALLOC_NO_BARRIER) != 0 ? block : orrery::shmem::given(block);
}

void* shmem_calloc(size_t count, size_t size) {
  must_be_up("shmem_calloc");
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    orrery::log::error("shmem_calloc: {} x {} bytes are more than there can be", count, size);
    return nullptr;
  }
  if (bytes == 0) return nullptr;
  void* const block = orrery::shmem::allocate(bytes);
  if (block != nullptr) std::memset(block, 0, bytes);
  return orrery::shmem::given(block);
}

void* shmem_align(size_t alignment, size_t size) {
  must_be_up("shmem_align");
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    orrery::log::error("shmem_align: alignment {}: expected a power of 2", alignment);
    return nullptr;
  }
  if (size == 0) return nullptr;
  if (alignment <= orrery::shmem::kAligned) return shmem_malloc(size);
  std::size_t bytes = 0;
  if (__builtin_add_overflow(size, alignment, &bytes)) return orrery::shmem::given(nullptr);
  void* const outer = dmapp_sheap_malloc(bytes);
  void* block = nullptr;
  if (outer != nullptr) {
    const auto at =
        (reinterpret_cast<std::uint64_t>(outer) + alignment - 1) & ~(std::uint64_t{alignment} - 1);
    block = reinterpret_cast<void*>(at);
    const std::lock_guard lock(orrery::shmem::g_mu);
    orrery::shmem::g_outer[block] = outer;
  }
  return orrery::shmem::given(block);
}

void* shmem_realloc(void* ptr, size_t size) {
  must_be_up("shmem_realloc");
  if (ptr == nullptr) return shmem_malloc(size);
  if (size == 0) {
    shmem_free(ptr);
    return nullptr;
  }
  if (!orrery::shmem::is_block(ptr)) {
    orrery::log::error("shmem_realloc({}): no block of the symmetric heap begins there", ptr);
    return nullptr;
  }
  shmem_barrier_all();
  return orrery::shmem::given(orrery::shmem::resize(ptr, size));
}

void shmem_free(void* ptr) {
  must_be_up("shmem_free");
  if (ptr == nullptr) return;
  if (!orrery::shmem::is_block(ptr)) {
    orrery::log::error("shmem_free({}): no block of the symmetric heap begins there; it is left alone", ptr);
    return;
  }
  // No PE's block goes while another one still writes to it.
  shmem_barrier_all();
  orrery::shmem::release(ptr);
}

void* shmalloc(size_t size) { return shmem_malloc(size); }
void shfree(void* ptr) { shmem_free(ptr); }
void* shrealloc(void* ptr, size_t size) { return shmem_realloc(ptr, size); }
void* shmemalign(size_t alignment, size_t size) { return shmem_align(alignment, size); }

}  // extern "C"
