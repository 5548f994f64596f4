// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/log.hpp"
#include "lib/shmem/access.hpp"
#include "lib/shmem/combine.hpp"
#include "lib/shmem/group.hpp"
#include "lib/shmem/wait.hpp"

#include "include/shmem/shmem.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

// The Fortran interface of OpenSHMEM 1.4: names in lower case with an underscore behind them, every argument
// by reference, INTEGER and LOGICAL of 4 bytes. What gfortran appends for CHARACTER arguments is not looked
// at.
namespace orrery::shmem {

namespace {

// A sync array of INTEGERs has room for the words and for their alignment.
long* sync_words(void* sync) {
  return reinterpret_cast<long*>((reinterpret_cast<std::uint64_t>(sync) + 7) & ~std::uint64_t{7});
}

Set set_of(const char* call, const int* start, const int* log_stride, const int* size, void* sync) {
  return active_set(call, *start, *log_stride, *size, sync == nullptr ? nullptr : sync_words(sync));
}

std::size_t count_of(const char* call, const int* count) {
  if (*count < 0) fail(call, "%d elements: expected 0 or more", *count);
  return static_cast<std::size_t>(*count);
}

// A lock of 4 bytes, PE 0's copy of it: the number of its holder, plus 1. Its waiters do not queue.
std::uint32_t take_lock(const char* call, std::uint32_t* lock) {
  return fetch_amo(call, lock, 0,
                   amo_of<std::uint32_t>(DMAPP_AMO_CSWAP, 0, static_cast<std::uint32_t>(g_job.pe) + 1));
}

__extension__ using Real16 = __float128;

}  // namespace

}  // namespace orrery::shmem

namespace shmem = orrery::shmem;
namespace group = orrery::shmem::group;
using shmem::count_of;

#define ORRERY_MOVE(NAME, BYTES, OP)                                                       \
  void shmem_##NAME##_(void* dest, const void* source, const int* nelems, const int* pe) { \
    constexpr const char* call = "shmem_" #NAME;                                           \
    shmem::OP(call, dest, source, count_of(call, nelems) * (BYTES), *pe);                  \
  }
#define ORRERY_STRIDED(NAME, BYTES, OP)                                                                   \
  void shmem_##NAME##_(void* dest, const void* source, const int* dst, const int* sst, const int* nelems, \
                       const int* pe) {                                                                   \
    constexpr const char* call = "shmem_" #NAME;                                                          \
    shmem::OP(call, dest, source, *dst, *sst, count_of(call, nelems), BYTES, *pe);                        \
  }
#define ORRERY_NAMED(N, BYTES)             \
  ORRERY_MOVE(N##_put, BYTES, put)         \
  ORRERY_MOVE(N##_get, BYTES, get)         \
  ORRERY_MOVE(N##_put_nbi, BYTES, put_nbi) \
  ORRERY_MOVE(N##_get_nbi, BYTES, get_nbi) \
  ORRERY_STRIDED(N##_iput, BYTES, iput)    \
  ORRERY_STRIDED(N##_iget, BYTES, iget)
#define ORRERY_SIZED(N, BYTES)              \
  ORRERY_MOVE(put##N, BYTES, put)           \
  ORRERY_MOVE(get##N, BYTES, get)           \
  ORRERY_MOVE(put##N##_nbi, BYTES, put_nbi) \
  ORRERY_MOVE(get##N##_nbi, BYTES, get_nbi) \
  ORRERY_STRIDED(iput##N, BYTES, iput)      \
  ORRERY_STRIDED(iget##N, BYTES, iget)

#define ORRERY_SET_TAIL const int *start, const int *log_stride, const int *size, void *sync
#define ORRERY_SET(CALL) shmem::set_of(CALL, start, log_stride, size, sync)
#define ORRERY_COLLECTIVE(NAME, BYTES, OP)                                                   \
  void shmem_##NAME##_(void* dest, const void* source, const int* nelems, ORRERY_SET_TAIL) { \
    constexpr const char* call = "shmem_" #NAME;                                             \
    group::OP(ORRERY_SET(call), dest, source, count_of(call, nelems) * (BYTES));             \
  }
#define ORRERY_COLLECTIVES(N, BYTES)                                                             \
  void shmem_broadcast##N##_(void* dest, const void* source, const int* nelems, const int* root, \
                             ORRERY_SET_TAIL) {                                                  \
    constexpr const char* call = "shmem_broadcast" #N;                                           \
    const shmem::Set set = ORRERY_SET(call);                                                     \
    if (*root < 0 || *root >= set.size)                                                          \
      shmem::fail(call, "PE_root %d: expected 0 to %d", *root, set.size - 1);                    \
    group::broadcast(set, dest, source, count_of(call, nelems) * (BYTES), *root);                \
  }                                                                                              \
  ORRERY_COLLECTIVE(collect##N, BYTES, collect)                                                  \
  ORRERY_COLLECTIVE(fcollect##N, BYTES, fcollect)                                                \
  ORRERY_COLLECTIVE(alltoall##N, BYTES, alltoall)                                                \
  void shmem_alltoalls##N##_(void* dest, const void* source, const int* dst, const int* sst,     \
                             const int* nelems, ORRERY_SET_TAIL) {                               \
    constexpr const char* call = "shmem_alltoalls" #N;                                           \
    group::alltoalls(ORRERY_SET(call), dest, source, *dst, *sst, count_of(call, nelems), BYTES); \
  }

#define ORRERY_TO_ALL(T, N, OP)                                                                         \
  void shmem_##N##_##OP##_to_all_(void* dest, const void* source, const int* nreduce, const int* start, \
                                  const int* log_stride, const int* size, void* /*work*/, void* sync) { \
    constexpr const char* call = "shmem_" #N "_" #OP "_to_all";                                         \
    const shmem::Set set = ORRERY_SET(call);                                                            \
    const std::size_t nelems = count_of(call, nreduce);                                                 \
    shmem::must_be_symmetric(call, dest, nelems * sizeof(T));                                           \
    group::reduce(set, dest, source, nelems, sizeof(T), shmem::reduction_##OP<T>());                    \
  }
#define ORRERY_ARITHMETIC(T, N) ORRERY_TO_ALL(T, N, sum) ORRERY_TO_ALL(T, N, prod)
#define ORRERY_REAL(T, N) ORRERY_ARITHMETIC(T, N) ORRERY_TO_ALL(T, N, min) ORRERY_TO_ALL(T, N, max)
#define ORRERY_INTEGER(T, N) \
  ORRERY_REAL(T, N) ORRERY_TO_ALL(T, N, and) ORRERY_TO_ALL(T, N, or) ORRERY_TO_ALL(T, N, xor)

#define ORRERY_AMO_WIDE(T, N, C)                                                                         \
  T shmem_##N##_swap_(T* dest, const T* value, const int* pe) {                                          \
    return shmem_##C##_atomic_swap(dest, *value, *pe);                                                   \
  }                                                                                                      \
  T shmem_##N##_fetch_(const T* source, const int* pe) { return shmem_##C##_atomic_fetch(source, *pe); } \
  void shmem_##N##_set_(T* dest, const T* value, const int* pe) { shmem_##C##_atomic_set(dest, *value, *pe); }
#define ORRERY_AMO(T, N, C)                                                                               \
  T shmem_##N##_cswap_(T* dest, const T* cond, const T* value, const int* pe) {                           \
    return shmem_##C##_atomic_compare_swap(dest, *cond, *value, *pe);                                     \
  }                                                                                                       \
  T shmem_##N##_fadd_(T* dest, const T* value, const int* pe) {                                           \
    return shmem_##C##_atomic_fetch_add(dest, *value, *pe);                                               \
  }                                                                                                       \
  T shmem_##N##_finc_(T* dest, const int* pe) { return shmem_##C##_atomic_fetch_inc(dest, *pe); }         \
  void shmem_##N##_add_(T* dest, const T* value, const int* pe) {                                         \
    shmem_##C##_atomic_add(dest, *value, *pe);                                                            \
  }                                                                                                       \
  void shmem_##N##_inc_(T* dest, const int* pe) { shmem_##C##_atomic_inc(dest, *pe); }                    \
  void shmem_##N##_wait_(T* ivar, const T* value) { shmem_##C##_wait_until(ivar, SHMEM_CMP_NE, *value); } \
  void shmem_##N##_wait_until_(T* ivar, const int* cmp, const T* value) {                                 \
    shmem_##C##_wait_until(ivar, *cmp, *value);                                                           \
  }

extern "C" {

void shmem_init_(void) { shmem_init(); }
void start_pes_(const int* npes) { start_pes(*npes); }
void shmem_finalize_(void) { shmem_finalize(); }
void shmem_global_exit_(const int* status) { shmem_global_exit(*status); }
int shmem_my_pe_(void) { return shmem_my_pe(); }
int shmem_n_pes_(void) { return shmem_n_pes(); }
int my_pe_(void) { return shmem_my_pe(); }
int num_pes_(void) { return shmem_n_pes(); }
int shmem_pe_accessible_(const int* pe) { return shmem_pe_accessible(*pe); }
int shmem_addr_accessible_(const void* addr, const int* pe) { return shmem_addr_accessible(addr, *pe); }
void* shmem_ptr_(const void* dest, const int* pe) { return shmem_ptr(dest, *pe); }
void shmem_info_get_version_(int* major, int* minor) {
  *major = SHMEM_MAJOR_VERSION;
  *minor = 4;
}
void shmem_info_get_name_(char* name, std::size_t length) {
  std::memset(name, ' ', length);
  std::memcpy(name, SHMEM_VENDOR_STRING, std::min(length, std::strlen(SHMEM_VENDOR_STRING)));
}
void shmem_pcontrol_(const int* level) { shmem_pcontrol(*level); }

// `length` counts words of 32 bits. errcode: 0, -1 (length), -2 (no room); with abort not 0 those end the
// job.
void shpalloc_(void** addr, const int* length, int* errcode, const int* abort) {
  *errcode = *length < 1 ? -1 : 0;
  *addr = *length < 1 ? nullptr : shmem_malloc(static_cast<std::size_t>(*length) * 4);
  if (*errcode == 0 && *addr == nullptr) *errcode = -2;
  if (*errcode != 0 && *abort != 0) shmem::fail("shpalloc", "no block of %d words of 32 bits", *length);
}
void shpdeallc_(void** addr, int* errcode, const int* /*abort*/) {
  *errcode = 0;
  shmem_free(*addr);
  *addr = nullptr;
}
// status: 0: it was lengthened where it is; 1: it moved; as shpalloc's otherwise.
void shpclmove_(void** addr, const int* length, int* status, const int* abort) {
  void* const before = *addr;
  void* const after = *length < 1 ? nullptr : shmem_realloc(before, static_cast<std::size_t>(*length) * 4);
  *status = *length < 1 ? -1 : after == nullptr ? -2 : after == before ? 0 : 1;
  if (after != nullptr) *addr = after;
  if (*status < 0 && *abort != 0) shmem::fail("shpclmove", "no block of %d words of 32 bits", *length);
}

ORRERY_NAMED(character, 1)
ORRERY_NAMED(complex, 8)
ORRERY_NAMED(double, 8)
ORRERY_NAMED(integer, 4)
ORRERY_NAMED(logical, 4)
ORRERY_NAMED(real, 4)
ORRERY_SIZED(4, 4)
ORRERY_SIZED(8, 8)
ORRERY_SIZED(32, 4)
ORRERY_SIZED(64, 8)
ORRERY_SIZED(128, 16)
ORRERY_MOVE(putmem, 1, put)
ORRERY_MOVE(getmem, 1, get)
ORRERY_MOVE(putmem_nbi, 1, put_nbi)
ORRERY_MOVE(getmem_nbi, 1, get_nbi)
ORRERY_MOVE(put, 8, put)
ORRERY_MOVE(get, 8, get)

ORRERY_COLLECTIVES(4, 4)
ORRERY_COLLECTIVES(8, 8)
ORRERY_COLLECTIVES(32, 4)
ORRERY_COLLECTIVES(64, 8)
void shmem_barrier_all_(void) { shmem_barrier_all(); }
void shmem_sync_all_(void) { shmem_sync_all(); }
void shmem_barrier_(ORRERY_SET_TAIL) {
  const shmem::Set set = ORRERY_SET("shmem_barrier");
  shmem::quiet("shmem_barrier");
  group::sync(set);
}
void shmem_sync_(ORRERY_SET_TAIL) { group::sync(ORRERY_SET("shmem_sync")); }

ORRERY_INTEGER(std::int16_t, int2)
ORRERY_INTEGER(std::int32_t, int4)
ORRERY_INTEGER(std::int64_t, int8)
ORRERY_REAL(float, real4)
ORRERY_REAL(double, real8)
ORRERY_REAL(shmem::Real16, real16)
ORRERY_ARITHMETIC(SHMEM_COMPLEXF_, comp4)
ORRERY_ARITHMETIC(SHMEM_COMPLEXD_, comp8)

ORRERY_AMO_WIDE(std::int32_t, int4, int32)
ORRERY_AMO_WIDE(std::int64_t, int8, int64)
ORRERY_AMO_WIDE(float, real4, float)
ORRERY_AMO_WIDE(double, real8, double)
ORRERY_AMO(std::int32_t, int4, int32)
ORRERY_AMO(std::int64_t, int8, int64)
void shmem_wait_(std::int32_t* ivar, const std::int32_t* value) { shmem_int32_wait(ivar, *value); }
void shmem_wait_until_(std::int32_t* ivar, const int* cmp, const std::int32_t* value) {
  shmem_int32_wait_until(ivar, *cmp, *value);
}

void shmem_fence_(void) { shmem_fence(); }
void shmem_quiet_(void) { shmem_quiet(); }
void shmem_set_lock_(std::uint32_t* lock) {
  constexpr const char* call = "shmem_set_lock";
  shmem::wait_until(call, [lock] { return shmem::take_lock(call, lock) == 0; });
}
int shmem_test_lock_(std::uint32_t* lock) { return shmem::take_lock("shmem_test_lock", lock) == 0 ? 0 : 1; }
void shmem_clear_lock_(std::uint32_t* lock) {
  shmem::quiet("shmem_clear_lock");
  shmem::amo("shmem_clear_lock", lock, 0, shmem::amo_of<std::uint32_t>(DMAPP_AMO_SWAP, 0));
  shmem::quiet("shmem_clear_lock");
}

void shmem_clear_cache_inv_(void) {}
void shmem_set_cache_inv_(void) {}
void shmem_clear_cache_line_inv_(void* /*dest*/) {}
void shmem_set_cache_line_inv_(void* /*dest*/) {}
void shmem_udcflush_(void) {}
void shmem_udcflush_line_(void* /*dest*/) {}

}  // extern "C"
