// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/shmem/access.hpp"
#include "lib/shmem/combine.hpp"
#include "lib/shmem/group.hpp"
#include "lib/shmem/wait.hpp"

#include "include/shmem/shmemx.h"

#include <ctime>

// The extensions of <shmemx.h>.
namespace orrery::shmem {

namespace {

using Move = void (*)(const char*, void*, const void*, std::uint64_t, int);

// Blocks of `bytes` bytes, `to` and `from` bytes apart.
template <Move kMove>
void blocks(const char* call, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
            std::size_t bsize, std::size_t nblocks, std::size_t width, int pe) {
  if (bsize == 0 || nblocks == 0) return;
  if (dst < static_cast<std::ptrdiff_t>(bsize) || sst < static_cast<std::ptrdiff_t>(bsize))
    fail(call, "strides %td and %td: expected at least the %zu elements of a block", dst, sst, bsize);
  auto* to = static_cast<std::byte*>(dest);
  const auto* from = static_cast<const std::byte*>(source);
  for (std::size_t i = 0; i < nblocks; ++i) {
    kMove(call, to, from, bsize * width, pe);
    to += static_cast<std::size_t>(dst) * width;
    from += static_cast<std::size_t>(sst) * width;
  }
  must(call, dmapp_thread_gsync_wait(), dest, bsize * width, pe);
}

int scan(const char* call, shmem_team_t team, void* dest, const void* source, std::size_t nelems,
         std::size_t width, Combine combine, bool inclusive) {
  must_be_up(call);
  const Team* const one = find_team(call, team);
  if (one == nullptr) return -1;
  group::scan(one->set, dest, source, nelems, width, combine, inclusive);
  return 0;
}

}  // namespace

}  // namespace orrery::shmem

namespace shmem = orrery::shmem;
using shmem::pe_of;

#define ORRERY_BLOCKS(NAME, T, BYTES, OP)                                                                  \
  void shmemx_##NAME(T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, \
                     int pe) {                                                                             \
    shmem::blocks<shmem::OP>("shmemx_" #NAME, dest, source, dst, sst, bsize, nblocks, BYTES, pe);          \
  }                                                                                                        \
  void shmemx_ctx_##NAME(shmem_ctx_t ctx, T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,          \
                         size_t bsize, size_t nblocks, int pe) {                                           \
    shmem::blocks<shmem::OP>("shmemx_ctx_" #NAME, dest, source, dst, sst, bsize, nblocks, BYTES,           \
                             pe_of("shmemx_ctx_" #NAME, ctx, pe));                                         \
  }
#define ORRERY_TYPED(T, N, A)                     \
  ORRERY_BLOCKS(N##_ibput, T, sizeof(T), put_nbi) \
  ORRERY_BLOCKS(N##_ibget, T, sizeof(T), get_nbi)
#define ORRERY_SIZED(B, A)                        \
  ORRERY_BLOCKS(ibput##B, void, (B) / 8, put_nbi) \
  ORRERY_BLOCKS(ibget##B, void, (B) / 8, get_nbi)
#define ORRERY_SCAN_OF(T, N, OP, INCLUSIVE)                                               \
  int shmemx_##N##_sum_##OP(shmem_team_t team, T* dest, const T* source, size_t nelems) { \
    return shmem::scan("shmemx_" #N "_sum_" #OP, team, dest, source, nelems, sizeof(T),   \
                       shmem::combine_sum<T>, INCLUSIVE);                                 \
  }
#define ORRERY_SCAN(T, N, A) ORRERY_SCAN_OF(T, N, inscan, true) ORRERY_SCAN_OF(T, N, exscan, false)

extern "C" {

SHMEM_RMA_TYPES_(ORRERY_TYPED, 0)
SHMEM_WIDTHS_(ORRERY_SIZED, 0)
SHMEM_REDUCE_ARITH_TYPES_(ORRERY_SCAN, 0)

double shmemx_wtime(void) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void shmemx_register_gettid(uint64_t (* /*gettid_fn*/)(void)) {}

void shmemx_ct_create(shmemx_ct_t* ct) {
  *ct = static_cast<shmemx_ct_t>(shmem_calloc(1, sizeof(shmemx_ct_object)));
  if (*ct == nullptr) shmem::fail("shmemx_ct_create", "%s", "the symmetric heap has no room for a counter");
}
void shmemx_ct_free(shmemx_ct_t* ct) {
  shmem_free(*ct);
  *ct = nullptr;
}
long shmemx_ct_get(shmemx_ct_t ct) { return __atomic_load_n(&ct->count, __ATOMIC_ACQUIRE); }
void shmemx_ct_set(shmemx_ct_t ct, long value) { __atomic_store_n(&ct->count, value, __ATOMIC_RELEASE); }
void shmemx_ct_wait(shmemx_ct_t ct, long wait_for) {
  shmem::wait_until("shmemx_ct_wait", [=] { return shmemx_ct_get(ct) >= wait_for; });
}
// Both are complete when the counter goes up.
void shmemx_putmem_ct(shmemx_ct_t ct, void* dest, const void* source, size_t len, int pe) {
  shmem::put("shmemx_putmem_ct", dest, source, len, pe);
  shmem_long_atomic_inc(&ct->count, pe);
}
void shmemx_getmem_ct(shmemx_ct_t ct, void* dest, const void* source, size_t len, int pe) {
  shmem::get("shmemx_getmem_ct", dest, source, len, pe);
  shmem_long_atomic_inc(&ct->count, pe);
}

}  // extern "C"
