// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/udreg/cache.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace orrery::udreg {

namespace {

// The caches of the process, which clients find by name. Never destroyed: exit handlers may still ask.
struct Registry {
  std::mutex mu;
  // Shared: a call goes on with the cache that it found, which another thread may end meanwhile.
  std::vector<std::shared_ptr<Cache>> caches;  // guarded by mu
};
Registry& registry() {
  static Registry* const all = new Registry;
  return *all;
}

// The cache of a handle, or null. REQUIRES: the registry's lock.
std::shared_ptr<Cache> find(udreg_cache_handle_t handle) {
  for (const auto& cache : registry().caches) {
    if (reinterpret_cast<udreg_cache_handle_t>(cache.get()) == handle) return cache;
  }
  return nullptr;
}

std::shared_ptr<Cache> look_up(udreg_cache_handle_t handle) {
  const std::lock_guard lock(registry().mu);
  return find(handle);
}

bool has_end(const char* text) { return std::memchr(text, 0, UDREG_MAX_CACHENAME_LEN) != nullptr; }

}  // namespace

}  // namespace orrery::udreg

using orrery::udreg::Cache;
using orrery::udreg::look_up;
using orrery::udreg::registry;

extern "C" {

udreg_return_t UDREG_CacheCreate(udreg_cache_attr_t* attr) {
  constexpr std::uint32_t kModes = UDREG_CC_MODE_USE_LARGE_PAGES | UDREG_CC_MODE_USE_KERNEL_CACHE |
                                   UDREG_CC_MODE_USE_EVICT_W_UNREG | UDREG_CC_MODE_USE_LAZY_DEREG;
  if (attr == nullptr || !orrery::udreg::has_end(attr->cache_name) || attr->cache_name[0] == 0 ||
      attr->max_entries == 0 || attr->device_reg_func == nullptr || attr->device_dereg_func == nullptr ||
      (attr->modes & ~kModes) != 0)
    return UDREG_RC_INVALID_PARAM;
  const std::lock_guard lock(registry().mu);
  for (const auto& cache : registry().caches) {
    if (cache->name() == attr->cache_name) return UDREG_RC_INVALID_PARAM;
  }
  std::shared_ptr<Cache> cache(new (std::nothrow) Cache(*attr));
  if (cache == nullptr) return UDREG_RC_NO_SPACE;
  registry().caches.push_back(std::move(cache));
  return UDREG_RC_SUCCESS;
}

udreg_return_t UDREG_CacheAccess(const char* cache_name, udreg_cache_handle_t* handle) {
  if (cache_name == nullptr || handle == nullptr) return UDREG_RC_INVALID_PARAM;
  const std::lock_guard lock(registry().mu);
  for (const auto& cache : registry().caches) {
    if (cache->name() != cache_name) continue;
    ++cache->accesses;
    *handle = reinterpret_cast<udreg_cache_handle_t>(cache.get());
    return UDREG_RC_SUCCESS;
  }
  return UDREG_RC_NO_MATCH;
}

udreg_return_t UDREG_CacheRelease(udreg_cache_handle_t handle) {
  const std::lock_guard lock(registry().mu);
  const auto cache = orrery::udreg::find(handle);
  if (cache == nullptr || cache->accesses == 0) return UDREG_RC_INVALID_PARAM;
  --cache->accesses;
  return UDREG_RC_SUCCESS;
}

udreg_return_t UDREG_CacheDestroy(udreg_cache_handle_t handle) {
  const auto cache = look_up(handle);
  if (cache == nullptr) return UDREG_RC_INVALID_PARAM;
  {
    const std::lock_guard lock(registry().mu);
    // The caller may hold one access itself.
    if (cache->accesses > 1) return UDREG_RC_NO_SPACE;
  }
  // Without the registry's lock: the client's functions are called.
  if (!cache->end()) return UDREG_RC_NO_SPACE;
  const std::lock_guard lock(registry().mu);
  std::erase(registry().caches, cache);
  return UDREG_RC_SUCCESS;
}

udreg_return_t UDREG_Register(udreg_cache_handle_t handle, void* address, uint64_t length,
                              udreg_entry_t** entry) {
  const auto cache = look_up(handle);
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  // Rounding up to a large page must not wrap.
  if (cache == nullptr || entry == nullptr || length == 0 || begin > (1ull << 56) || length > (1ull << 56))
    return UDREG_RC_INVALID_PARAM;
  return cache->take(begin, length, entry);
}

udreg_return_t UDREG_Unregister(udreg_cache_handle_t handle, udreg_entry_t* entry) {
  const auto cache = look_up(handle);
  return cache == nullptr ? UDREG_RC_INVALID_PARAM : cache->give(entry, false);
}

udreg_return_t UDREG_DecrRefcount(udreg_cache_handle_t handle, udreg_entry_t* entry) {
  const auto cache = look_up(handle);
  return cache == nullptr ? UDREG_RC_INVALID_PARAM : cache->give(entry, true);
}

udreg_return_t UDREG_Evict(udreg_cache_handle_t handle) {
  const auto cache = look_up(handle);
  return cache == nullptr ? UDREG_RC_INVALID_PARAM : cache->evict();
}

udreg_return_t UDREG_GetStat(udreg_cache_handle_t handle, uint32_t which, uint64_t* value) {
  const auto cache = look_up(handle);
  return cache != nullptr && value != nullptr && cache->stat(which, value) ? UDREG_RC_SUCCESS
                                                                           : UDREG_RC_INVALID_PARAM;
}

udreg_return_t UDREG_ResetStat(udreg_cache_handle_t handle, uint32_t which) {
  const auto cache = look_up(handle);
  return cache != nullptr && cache->reset(which) ? UDREG_RC_SUCCESS : UDREG_RC_INVALID_PARAM;
}

}  // extern "C"
