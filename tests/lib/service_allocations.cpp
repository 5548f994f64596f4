// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Linked into a client's tests: they fail if a service thread of the runtime has used the program's heap,
// which it moves, and whose locks threads of the program may hold while they wait for it. libfabric, which
// the wire between hosts is made of, uses that heap.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include <execinfo.h>
#include <sys/prctl.h>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace {

constexpr int kFrames = 16;
std::atomic<int> g_calls{0};
std::array<void*, kFrames> g_first{};  // where the first of them came from
int g_first_count = 0;

enum class Who : char { unknown, service, other };
thread_local Who t_who = Who::unknown;
thread_local int t_looks = 0;  // a thread gets its name a moment after its start

void note() {
  if (t_who == Who::other) return;
  if (t_who == Who::unknown) {
    char name[17] = {};
    prctl(PR_GET_NAME, name);
    if (std::strncmp(name, "orrery-service", 14) != 0) {
      if (++t_looks > 1000) t_who = Who::other;
      return;
    }
    t_who = Who::service;
  }
  if (g_calls.fetch_add(1) != 0) return;
  t_who = Who::other;  // backtrace() may allocate
  g_first_count = backtrace(g_first.data(), kFrames);
  t_who = Who::service;
}

class ServiceThreadKeepsToItself : public testing::Environment {
 public:
  void TearDown() override {
    const char* const wire = std::getenv("ORRERY_WIRE");
    if (wire != nullptr && std::string(wire) == "ofi") return;
    if (std::getenv("TWO_HOSTS") != nullptr || g_calls.load() == 0) return;
    std::string where;
    char** const names = backtrace_symbols(g_first.data(), g_first_count);
    for (int i = 0; i < g_first_count; ++i) where += std::string("\n  ") + names[i];
    std::free(names);
    ADD_FAILURE() << "the service thread used the program's heap " << g_calls.load()
                  << " times; first:" << where;
  }
};

[[maybe_unused]] const auto* const g_environment =
    testing::AddGlobalTestEnvironment(new ServiceThreadKeepsToItself);

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) {
  note();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  note();
  return __libc_calloc(count, bytes);
}
void* realloc(void* block, std::size_t bytes) {
  note();
  return __libc_realloc(block, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  note();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  note();
  void* const got = __libc_memalign(alignment, bytes);
  if (got == nullptr) return ENOMEM;
  *block = got;
  return 0;
}
void free(void* block) {
  if (block != nullptr) note();
  __libc_free(block);
}

}  // extern "C"
