// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/shmem/access.hpp"
#include "lib/shmem/profiling.hpp"
#include "lib/shmem/wait.hpp"

#include "include/shmem/shmem.h"

// Order, waiting for memory, locks.
namespace orrery::shmem {

namespace {

template <typename T>
bool holds(const volatile T* word, int cmp, T value, const char* call) {
  // Acquire: what was written before it is seen.
  const T now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  switch (cmp) {
    case SHMEM_CMP_EQ:
      return now == value;
    case SHMEM_CMP_NE:
      return now != value;
    case SHMEM_CMP_GT:
      return now > value;
    case SHMEM_CMP_LE:
      return now <= value;
    case SHMEM_CMP_LT:
      return now < value;
    case SHMEM_CMP_GE:
      return now >= value;
    default:
      fail(call, "cmp %d: expected SHMEM_CMP_EQ, _NE, _GT, _LE, _LT or _GE (0 to 5)", cmp);
  }
}

// A look in vain lets what needs this PE go on: a program may test in a loop that has nothing else.
template <typename Found>
Found looked(const char* call, Found found, bool in_vain) {
  if (in_vain) {
    give_way();
    look_who_lives(call);
  }
  return found;
}

// Words that a call waits for: one value for all, or one for each.
template <typename T>
struct Words {
  const char* call;
  volatile T* words;
  std::size_t count;
  const int* status;
  int cmp;
  const T* values;
  bool one_value;

  bool counts(std::size_t i) const { return status == nullptr || status[i] == 0; }
  bool holds(std::size_t i) const {
    return shmem::holds(&words[i], cmp, one_value ? *values : values[i], call);
  }
  bool none() const {
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i)) return false;
    return true;
  }
  bool all() const {
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i) && !holds(i)) return false;
    return true;
  }
  std::size_t any() const {
    // Not always from the first on: none is to be kept waiting by those before it.
    static thread_local std::size_t t_first = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t i = (t_first + k) % count;
      if (counts(i) && holds(i)) {
        t_first = i + 1;
        return i;
      }
    }
    return SIZE_MAX;
  }
  std::size_t some(std::size_t* indices) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i) && holds(i)) indices[found++] = i;
    return found;
  }

  // What no PE can write to would be waited for, or looked at, in vain.
  void check() const {
    must_be_symmetric(call, const_cast<const T*>(words), bytes_of(count, sizeof(T)));
    if (count != 0 && values == nullptr) fail(call, "%s", "cmp_values is a null pointer");
  }
  void check(const std::size_t* indices) const {
    check();
    if (count != 0 && indices == nullptr) fail(call, "%s", "indices is a null pointer");
  }
  void wait_all() const {
    check();
    wait_until(call, [this] { return all(); });
  }
  std::size_t wait_any() const {
    check();
    if (none()) return SIZE_MAX;
    std::size_t found = SIZE_MAX;
    wait_until(call, [&] { return (found = any()) != SIZE_MAX; });
    return found;
  }
  std::size_t wait_some(std::size_t* indices) const {
    check(indices);
    if (none()) return 0;
    std::size_t found = 0;
    wait_until(call, [&] { return (found = some(indices)) != 0; });
    return found;
  }
  int test_all() const {
    check();
    const bool is = all();
    return looked(call, is ? 1 : 0, !is);
  }
  std::size_t test_any() const {
    check();
    const std::size_t found = any();
    return looked(call, found, found == SIZE_MAX);
  }
  std::size_t test_some(std::size_t* indices) const {
    check(indices);
    const std::size_t found = some(indices);
    return looked(call, found, found == 0);
  }
};

}  // namespace

}  // namespace orrery::shmem

namespace shmem = orrery::shmem;

#define ORRERY_MANY(T, N, SUFFIX, VALUE, POINTER, ONE)                                                       \
  void shmem_##N##_wait_until_all##SUFFIX(volatile T* ivars, size_t nelems, const int* status, int cmp,      \
                                          VALUE) {                                                           \
    shmem::Words<T>{"shmem_" #N "_wait_until_all" #SUFFIX, ivars, nelems, status, cmp, POINTER, ONE}         \
        .wait_all();                                                                                         \
  }                                                                                                          \
  size_t shmem_##N##_wait_until_any##SUFFIX(volatile T* ivars, size_t nelems, const int* status, int cmp,    \
                                            VALUE) {                                                         \
    return shmem::Words<T>{"shmem_" #N "_wait_until_any" #SUFFIX, ivars, nelems, status, cmp, POINTER, ONE}  \
        .wait_any();                                                                                         \
  }                                                                                                          \
  size_t shmem_##N##_wait_until_some##SUFFIX(volatile T* ivars, size_t nelems, size_t* indices,              \
                                             const int* status, int cmp, VALUE) {                            \
    return shmem::Words<T>{"shmem_" #N "_wait_until_some" #SUFFIX, ivars, nelems, status, cmp, POINTER, ONE} \
        .wait_some(indices);                                                                                 \
  }                                                                                                          \
  int shmem_##N##_test_all##SUFFIX(volatile T* ivars, size_t nelems, const int* status, int cmp, VALUE) {    \
    return shmem::Words<T>{"shmem_" #N "_test_all" #SUFFIX, ivars, nelems, status, cmp, POINTER, ONE}        \
        .test_all();                                                                                         \
  }                                                                                                          \
  size_t shmem_##N##_test_any##SUFFIX(volatile T* ivars, size_t nelems, const int* status, int cmp, VALUE) { \
    return shmem::Words<T>{"shmem_" #N "_test_any" #SUFFIX, ivars, nelems, status, cmp, POINTER, ONE}        \
        .test_any();                                                                                         \
  }                                                                                                          \
  size_t shmem_##N##_test_some##SUFFIX(volatile T* ivars, size_t nelems, size_t* indices, const int* status, \
                                       int cmp, VALUE) {                                                     \
    return shmem::Words<T>{"shmem_" #N "_test_some" #SUFFIX, ivars, nelems, status, cmp, POINTER, ONE}       \
        .test_some(indices);                                                                                 \
  }
#define ORRERY_WAIT(T, N, A)                                                                 \
  void shmem_##N##_wait_until(volatile T* ivar, int cmp, T cmp_value) {                      \
    constexpr const char* call = "shmem_" #N "_wait_until";                                  \
    shmem::must_be_symmetric(call, const_cast<const T*>(ivar), sizeof *ivar);                \
    shmem::wait_until(call, [=] { return shmem::holds(ivar, cmp, cmp_value, call); });       \
  }                                                                                          \
  void shmem_##N##_wait(volatile T* ivar, T cmp_value) {                                     \
    shmem_##N##_wait_until(ivar, SHMEM_CMP_NE, cmp_value);                                   \
  }                                                                                          \
  int shmem_##N##_test(volatile T* ivar, int cmp, T cmp_value) {                             \
    shmem::must_be_symmetric("shmem_" #N "_test", const_cast<const T*>(ivar), sizeof *ivar); \
    const bool is = shmem::holds(ivar, cmp, cmp_value, "shmem_" #N "_test");                 \
    return shmem::looked("shmem_" #N "_test", is ? 1 : 0, !is);                              \
  }                                                                                          \
  ORRERY_MANY(T, N, , T cmp_value, &cmp_value, true)                                         \
  ORRERY_MANY(T, N, _vector, const T* cmp_values, cmp_values, false)

extern "C" {

SHMEM_NAMES_SYNC_(ORRERY_PROFILED)

SHMEM_WAIT_TYPES_(ORRERY_WAIT, 0)

void shmem_wait(volatile long* ivar, long cmp_value) { shmem_long_wait(ivar, cmp_value); }
// Without a type it is of long; C++ has an overload of that name.
void orrery_shmem_wait_until(volatile long* ivar, int cmp, long cmp_value) __asm__("shmem_wait_until");
void orrery_shmem_wait_until(volatile long* ivar, int cmp, long cmp_value) {
  shmem_long_wait_until(ivar, cmp, cmp_value);
}

uint64_t shmem_signal_wait_until(uint64_t* sig_addr, int cmp, uint64_t cmp_value) {
  uint64_t seen = 0;
  constexpr const char* call = "shmem_signal_wait_until";
  shmem::must_be_symmetric(call, sig_addr, sizeof *sig_addr);
  shmem::wait_until(call, [&] {
    seen = __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
    return shmem::holds(&seen, cmp, cmp_value, call);
  });
  return seen;
}

void shmem_fence(void) { shmem::quiet("shmem_fence"); }
void shmem_quiet(void) { shmem::quiet("shmem_quiet"); }
void shmem_ctx_fence(shmem_ctx_t ctx) { shmem_ctx_quiet(ctx); }

void shmem_ctx_quiet(shmem_ctx_t ctx) {
  constexpr const char* call = "shmem_ctx_quiet";
  if (ctx != SHMEM_CTX_INVALID && ctx != SHMEM_CTX_DEFAULT &&
      (shmem::context_of(call, ctx)->options & SHMEM_CTX_PRIVATE) != 0) {
    shmem::quiet_of_thread(call);
    return;
  }
  shmem::quiet(call);
}

}  // extern "C"
