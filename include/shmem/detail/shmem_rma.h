/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "shmem_types.h"

/* Puts and gets: blocking, strided, of one element, and not blocking (_nbi). */

#ifdef __cplusplus
extern "C" {
#endif

#define SHMEM_DECLARE_(T, N, A)                                                                         \
  void shmem_##N##_put(T* dest, const T* source, size_t nelems, int pe);                                \
  void shmem_##N##_get(T* dest, const T* source, size_t nelems, int pe);                                \
  void shmem_##N##_iput(T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void shmem_##N##_iget(T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void shmem_##N##_p(T* dest, T value, int pe);                                                         \
  T shmem_##N##_g(const T* source, int pe);                                                             \
  void shmem_##N##_put_nbi(T* dest, const T* source, size_t nelems, int pe);                            \
  void shmem_##N##_get_nbi(T* dest, const T* source, size_t nelems, int pe);                            \
  void shmem_ctx_##N##_put(shmem_ctx_t ctx, T* dest, const T* source, size_t nelems, int pe);           \
  void shmem_ctx_##N##_get(shmem_ctx_t ctx, T* dest, const T* source, size_t nelems, int pe);           \
  void shmem_ctx_##N##_iput(shmem_ctx_t ctx, T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,    \
                            size_t nelems, int pe);                                                     \
  void shmem_ctx_##N##_iget(shmem_ctx_t ctx, T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,    \
                            size_t nelems, int pe);                                                     \
  void shmem_ctx_##N##_p(shmem_ctx_t ctx, T* dest, T value, int pe);                                    \
  T shmem_ctx_##N##_g(shmem_ctx_t ctx, const T* source, int pe);                                        \
  void shmem_ctx_##N##_put_nbi(shmem_ctx_t ctx, T* dest, const T* source, size_t nelems, int pe);       \
  void shmem_ctx_##N##_get_nbi(shmem_ctx_t ctx, T* dest, const T* source, size_t nelems, int pe);
SHMEM_RMA_TYPES_(SHMEM_DECLARE_, 0)
#undef SHMEM_DECLARE_

#define SHMEM_DECLARE_(B, A)                                                                               \
  void shmem_put##B(void* dest, const void* source, size_t nelems, int pe);                                \
  void shmem_get##B(void* dest, const void* source, size_t nelems, int pe);                                \
  void shmem_iput##B(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void shmem_iget##B(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void shmem_put##B##_nbi(void* dest, const void* source, size_t nelems, int pe);                          \
  void shmem_get##B##_nbi(void* dest, const void* source, size_t nelems, int pe);                          \
  void shmem_ctx_put##B(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);           \
  void shmem_ctx_get##B(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);           \
  void shmem_ctx_iput##B(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,    \
                         size_t nelems, int pe);                                                           \
  void shmem_ctx_iget##B(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,    \
                         size_t nelems, int pe);                                                           \
  void shmem_ctx_put##B##_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);     \
  void shmem_ctx_get##B##_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);
SHMEM_WIDTHS_(SHMEM_DECLARE_, 0)
#undef SHMEM_DECLARE_

void shmem_putmem(void* dest, const void* source, size_t nelems, int pe);
void shmem_getmem(void* dest, const void* source, size_t nelems, int pe);
void shmem_putmem_nbi(void* dest, const void* source, size_t nelems, int pe);
void shmem_getmem_nbi(void* dest, const void* source, size_t nelems, int pe);
void shmem_ctx_putmem(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);
void shmem_ctx_getmem(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);
void shmem_ctx_putmem_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);
void shmem_ctx_getmem_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);

/* Puts data, and behind them changes the signal as sig_op says. */
#define SHMEM_SIGNAL_TAIL_ uint64_t *sig_addr, uint64_t signal, int sig_op, int pe
#define SHMEM_DECLARE_(T, N, A)                                                                 \
  void shmem_##N##_put_signal(T* dest, const T* source, size_t nelems, SHMEM_SIGNAL_TAIL_);     \
  void shmem_##N##_put_signal_nbi(T* dest, const T* source, size_t nelems, SHMEM_SIGNAL_TAIL_); \
  void shmem_ctx_##N##_put_signal(shmem_ctx_t ctx, T* dest, const T* source, size_t nelems,     \
                                  SHMEM_SIGNAL_TAIL_);                                          \
  void shmem_ctx_##N##_put_signal_nbi(shmem_ctx_t ctx, T* dest, const T* source, size_t nelems, \
                                      SHMEM_SIGNAL_TAIL_);
SHMEM_RMA_TYPES_(SHMEM_DECLARE_, 0)
#undef SHMEM_DECLARE_
#define SHMEM_DECLARE_(B, A)                                                                         \
  void shmem_put##B##_signal(void* dest, const void* source, size_t nelems, SHMEM_SIGNAL_TAIL_);     \
  void shmem_put##B##_signal_nbi(void* dest, const void* source, size_t nelems, SHMEM_SIGNAL_TAIL_); \
  void shmem_ctx_put##B##_signal(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,     \
                                 SHMEM_SIGNAL_TAIL_);                                                \
  void shmem_ctx_put##B##_signal_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, \
                                     SHMEM_SIGNAL_TAIL_);
SHMEM_WIDTHS_(SHMEM_DECLARE_, 0)
#undef SHMEM_DECLARE_
void shmem_putmem_signal(void* dest, const void* source, size_t nelems, SHMEM_SIGNAL_TAIL_);
void shmem_putmem_signal_nbi(void* dest, const void* source, size_t nelems, SHMEM_SIGNAL_TAIL_);
void shmem_ctx_putmem_signal(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                             SHMEM_SIGNAL_TAIL_);
void shmem_ctx_putmem_signal_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                                 SHMEM_SIGNAL_TAIL_);
#undef SHMEM_SIGNAL_TAIL_

#ifdef __cplusplus
}
#endif
