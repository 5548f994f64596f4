// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/shmem/access.hpp"
#include "lib/shmem/life.hpp"
#include "lib/shmem/profiling.hpp"

#include "include/shmem/shmem.h"

#include <algorithm>

// Puts and gets.
namespace orrery::shmem {

namespace {

// Element type and count for a strided transfer of DMAPP's; false: there is none of that width.
bool type_of(std::size_t width, dmapp_type_t* type) {
  switch (width) {
    case 1:
      *type = DMAPP_BYTE;
      return true;
    case 4:
      *type = DMAPP_DW;
      return true;
    case 8:
      *type = DMAPP_QW;
      return true;
    case 16:
      *type = DMAPP_DQW;
      return true;
    default:
      return false;
  }
}

void check_strides(const char* call, std::ptrdiff_t dst, std::ptrdiff_t sst) {
  if (dst < 1 || sst < 1) fail(call, "strides %td and %td: expected 1 or more", dst, sst);
}

}  // namespace

void iput(const char* call, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
          std::uint64_t nelems, std::size_t width, int pe) {
  if (nelems == 0) return;
  check_strides(call, dst, sst);
  if (dmapp_type_t type; type_of(width, &type)) {
    must(call, dmapp_iput(dest, segment_of(dest), pe, plain(source), dst, sst, nelems, type), dest,
         ((nelems - 1) * static_cast<std::uint64_t>(dst) + 1) * width, pe);
    return;
  }
  const auto w = static_cast<std::ptrdiff_t>(width);
  for (std::uint64_t i = 0; i < nelems; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    put_nbi(call, static_cast<std::byte*>(dest) + at * dst * w,
            static_cast<const std::byte*>(source) + at * sst * w, width, pe);
  }
  must(call, dmapp_thread_gsync_wait(), dest, width, pe);
}

void iget(const char* call, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
          std::uint64_t nelems, std::size_t width, int pe) {
  if (nelems == 0) return;
  check_strides(call, dst, sst);
  if (dmapp_type_t type; type_of(width, &type)) {
    must(call, dmapp_iget(dest, plain(source), segment_of(source), pe, dst, sst, nelems, type), source,
         ((nelems - 1) * static_cast<std::uint64_t>(sst) + 1) * width, pe);
    return;
  }
  const auto w = static_cast<std::ptrdiff_t>(width);
  for (std::uint64_t i = 0; i < nelems; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    get_nbi(call, static_cast<std::byte*>(dest) + at * dst * w,
            static_cast<const std::byte*>(source) + at * sst * w, width, pe);
  }
  must(call, dmapp_thread_gsync_wait(), source, width, pe);
}

void fail_quiet(const char* call, dmapp_return_t rc) {
  must_be_up(call);
  if (rc == DMAPP_RC_TRANSACTION_ERROR) fail_if_a_pe_just_ended(call);
  const char* why = "";
  (void)dmapp_explain_error(rc, &why);
  fail(call, "an operation that was under way did not come to a good end: %s", why);
}

void quiet_of_thread(const char* call) {
  const dmapp_return_t rc = dmapp_thread_gsync_wait();
  if (rc != DMAPP_RC_SUCCESS) [[unlikely]]
    fail_quiet(call, rc);
}

}  // namespace orrery::shmem

namespace shmem = orrery::shmem;
using shmem::pe_of;

// X(call, bytes of an element, type of the pointers) makes a call with and without context.
#define ORRERY_TRANSFER(NAME, T, BYTES, OP)                                                 \
  void shmem_##NAME(T* dest, const T* source, size_t nelems, int pe) {                      \
    shmem::OP("shmem_" #NAME, dest, source, shmem::bytes_of(nelems, BYTES), pe);            \
  }                                                                                         \
  void shmem_ctx_##NAME(shmem_ctx_t ctx, T* dest, const T* source, size_t nelems, int pe) { \
    shmem::OP("shmem_ctx_" #NAME, dest, source, shmem::bytes_of(nelems, BYTES),             \
              pe_of("shmem_ctx_" #NAME, ctx, pe));                                          \
  }
#define ORRERY_STRIDED(NAME, T, BYTES, OP)                                                           \
  void shmem_##NAME(T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { \
    shmem::OP("shmem_" #NAME, dest, source, dst, sst, nelems, BYTES, pe);                            \
  }                                                                                                  \
  void shmem_ctx_##NAME(shmem_ctx_t ctx, T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,     \
                        size_t nelems, int pe) {                                                     \
    shmem::OP("shmem_ctx_" #NAME, dest, source, dst, sst, nelems, BYTES,                             \
              pe_of("shmem_ctx_" #NAME, ctx, pe));                                                   \
  }

#define ORRERY_TYPED(T, N, A)                                                                                \
  ORRERY_TRANSFER(N##_put, T, sizeof(T), put_away)                                                           \
  ORRERY_TRANSFER(N##_get, T, sizeof(T), get)                                                                \
  ORRERY_TRANSFER(N##_put_nbi, T, sizeof(T), put_nbi)                                                        \
  ORRERY_TRANSFER(N##_get_nbi, T, sizeof(T), get_nbi)                                                        \
  ORRERY_STRIDED(N##_iput, T, sizeof(T), iput)                                                               \
  ORRERY_STRIDED(N##_iget, T, sizeof(T), iget)                                                               \
  void shmem_##N##_p(T* dest, T value, int pe) {                                                             \
    shmem::put_away("shmem_" #N "_p", dest, &value, sizeof value, pe);                                       \
  }                                                                                                          \
  T shmem_##N##_g(const T* source, int pe) {                                                                 \
    T value;                                                                                                 \
    shmem::get("shmem_" #N "_g", &value, source, sizeof value, pe);                                          \
    return value;                                                                                            \
  }                                                                                                          \
  void shmem_ctx_##N##_p(shmem_ctx_t ctx, T* dest, T value, int pe) {                                        \
    shmem::put_away("shmem_ctx_" #N "_p", dest, &value, sizeof value, pe_of("shmem_ctx_" #N "_p", ctx, pe)); \
  }                                                                                                          \
  T shmem_ctx_##N##_g(shmem_ctx_t ctx, const T* source, int pe) {                                            \
    T value;                                                                                                 \
    shmem::get("shmem_ctx_" #N "_g", &value, source, sizeof value, pe_of("shmem_ctx_" #N "_g", ctx, pe));    \
    return value;                                                                                            \
  }

#define ORRERY_SIZED(B, A)                              \
  ORRERY_TRANSFER(put##B, void, (B) / 8, put_away)      \
  ORRERY_TRANSFER(get##B, void, (B) / 8, get)           \
  ORRERY_TRANSFER(put##B##_nbi, void, (B) / 8, put_nbi) \
  ORRERY_TRANSFER(get##B##_nbi, void, (B) / 8, get_nbi) \
  ORRERY_STRIDED(iput##B, void, (B) / 8, iput)          \
  ORRERY_STRIDED(iget##B, void, (B) / 8, iget)

extern "C" {

SHMEM_NAMES_RMA_(ORRERY_PROFILED)

SHMEM_RMA_TYPES_(ORRERY_TYPED, 0)
SHMEM_WIDTHS_(ORRERY_SIZED, 0)
ORRERY_TRANSFER(putmem, void, 1, put_away)
ORRERY_TRANSFER(getmem, void, 1, get)
ORRERY_TRANSFER(putmem_nbi, void, 1, put_nbi)
ORRERY_TRANSFER(getmem_nbi, void, 1, get_nbi)

}  // extern "C"
