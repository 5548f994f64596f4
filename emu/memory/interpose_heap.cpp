// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
// Calls that take away the right to write, or parts of the heap: told first (unmapping.hpp). Exported by
// liborrery.so before libc's. Apart from interpose_map.cpp: sanitizers have no version of some of these. A
// program that takes them out of the archive must not take our mmap() along in the place of a sanitizer's.
#include "emu/memory/address_space.hpp"
#include "emu/memory/raw_calls.hpp"
#include "emu/memory/unmapping.hpp"

#include <cstdint>

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

namespace orrery::memory {

namespace {

// Empty for what the kernel refuses anyway.
Range protected_range(const void* at, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uint64_t>(at);
  if (bytes == 0 || bytes > AddressSpace::kSpan || begin > UINT64_MAX - bytes - kPageBytes) return {};
  return page_hull({begin, begin + bytes});
}

// libc's function.
template <typename Function>
Function* next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) found = dlsym(RTLD_DEFAULT, name);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

}  // namespace orrery::memory

extern "C" {

int mprotect(void* at, std::size_t bytes, int protection) noexcept {
  using namespace orrery::memory;
  const Unmapping unmapping((protection & PROT_WRITE) != 0 ? Range{} : protected_range(at, bytes));
  return raw::mprotect(reinterpret_cast<std::uint64_t>(at), bytes, protection);
}

int brk(void* end) noexcept {
  using namespace orrery::memory;
  static auto* const real = next<int(void*)>("brk");
  const auto now = reinterpret_cast<std::uint64_t>(next<void*(std::intptr_t)>("sbrk")(0));
  const auto wanted = reinterpret_cast<std::uint64_t>(end);
  const Unmapping unmapping(wanted < now ? page_hull({wanted, now}) : Range{});
  return real(end);
}

void* sbrk(std::intptr_t by) noexcept {
  using namespace orrery::memory;
  static auto* const real = next<void*(std::intptr_t)>("sbrk");
  if (by >= 0) return real(by);
  const auto now = reinterpret_cast<std::uint64_t>(real(0));
  const Unmapping unmapping(page_hull({now - static_cast<std::uint64_t>(-by), now}));
  return real(by);
}

int malloc_trim(std::size_t pad) noexcept {
  using namespace orrery::memory;
  static auto* const real = next<int(std::size_t)>("malloc_trim");
  // It may give back any part of the heap.
  const auto now = reinterpret_cast<std::uint64_t>(sbrk(0));
  const Range heap = told_around(now - 1);
  const Unmapping unmapping(heap);
  return real(pad);
}

}  // extern "C"
