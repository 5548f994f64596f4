// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The runtime's operators new and delete: a service thread's memory is its own (service_memory.hpp), other
// threads' is malloc's. Part of each shared library of ours, and known in that alone: the program's operators
// stay as they are.
#include "emu/base/service_memory.hpp"

#include <cstdlib>
#include <new>

namespace {

namespace own = orrery::service_memory;

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (void* const block = own::take(bytes, alignment)) return block;
  if (bytes == 0) bytes = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

// Without exceptions there is nothing to do when memory is used up.
void* allocate_or_abort(std::size_t bytes, std::size_t alignment) noexcept {
  void* const block = allocate(bytes, alignment);
  if (block == nullptr) std::abort();
  return block;
}

void release(void* block) noexcept {
  if (block != nullptr && !own::give_back(block)) std::free(block);
}

constexpr std::size_t kUsual = alignof(std::max_align_t);

}  // namespace

void* operator new(std::size_t n) { return allocate_or_abort(n, kUsual); }
void* operator new[](std::size_t n) { return allocate_or_abort(n, kUsual); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, kUsual); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, kUsual); }
void* operator new(std::size_t n, std::align_val_t a) {
  return allocate_or_abort(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return allocate_or_abort(n, static_cast<std::size_t>(a));
}
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { release(p); }
