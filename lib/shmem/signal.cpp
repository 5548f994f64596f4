// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/shmem/access.hpp"
#include "lib/shmem/profiling.hpp"
#include "lib/shmem/wait.hpp"

#include "include/shmem/shmem.h"
#include "include/shmem/shmemx.h"

// Puts with a signal behind them.
namespace orrery::shmem {

namespace {

void raise(const char* call, std::uint64_t* signal, std::uint64_t value, int op, int pe) {
  if (op == SHMEM_SIGNAL_SET) {
    amo(call, signal, pe, amo_of<std::uint64_t>(DMAPP_AMO_SWAP, value));
  } else if (op == SHMEM_SIGNAL_ADD) {
    amo(call, signal, pe, amo_of<std::uint64_t>(DMAPP_AMO_ADD, value));
  } else {
    fail(call, "sig_op %d: expected SHMEM_SIGNAL_SET (%d) or SHMEM_SIGNAL_ADD (%d)", op, SHMEM_SIGNAL_SET,
         SHMEM_SIGNAL_ADD);
  }
}

// The data are there when the signal is raised: a put that blocks, or, under a machine's clock, a request of
// the NIC that does both.
void put_signal(const char* call, void* dest, const void* source, std::uint64_t bytes, std::uint64_t* signal,
                std::uint64_t value, int op, int pe) {
  // What is refused here, the calls behind it tell.
  if (g_job.clocked && is_taken_at_once(bytes) && bytes != 0 && op == SHMEM_SIGNAL_SET &&
      segment_of(dest) == segment_of(signal) &&
      dmapp_put_flag_nbi(dest, segment_of(dest), pe, plain(source), bytes, DMAPP_BYTE, signal, value) ==
          DMAPP_RC_SUCCESS)
    return;
  put(call, dest, source, bytes, pe);
  raise(call, signal, value, op, pe);
}

}  // namespace

}  // namespace orrery::shmem

namespace shmem = orrery::shmem;
using shmem::pe_of;

#define ORRERY_TAIL uint64_t *sig_addr, uint64_t signal, int sig_op, int pe
#define ORRERY_SIGNAL(NAME, T, BYTES)                                                                     \
  void shmem_##NAME(T* dest, const T* source, size_t nelems, ORRERY_TAIL) {                               \
    shmem::put_signal("shmem_" #NAME, dest, source, shmem::bytes_of(nelems, BYTES), sig_addr, signal,     \
                      sig_op, pe);                                                                        \
  }                                                                                                       \
  void shmem_ctx_##NAME(shmem_ctx_t ctx, T* dest, const T* source, size_t nelems, ORRERY_TAIL) {          \
    shmem::put_signal("shmem_ctx_" #NAME, dest, source, shmem::bytes_of(nelems, BYTES), sig_addr, signal, \
                      sig_op, pe_of("shmem_ctx_" #NAME, ctx, pe));                                        \
  }
#define ORRERY_TYPED(T, N, A)                 \
  ORRERY_SIGNAL(N##_put_signal, T, sizeof(T)) \
  ORRERY_SIGNAL(N##_put_signal_nbi, T, sizeof(T))
#define ORRERY_SIZED(B, A)                      \
  ORRERY_SIGNAL(put##B##_signal, void, (B) / 8) \
  ORRERY_SIGNAL(put##B##_signal_nbi, void, (B) / 8)

extern "C" {

SHMEM_NAMES_SIGNAL_(ORRERY_PROFILED)

SHMEM_RMA_TYPES_(ORRERY_TYPED, 0)
SHMEM_WIDTHS_(ORRERY_SIZED, 0)
ORRERY_SIGNAL(putmem_signal, void, 1)
ORRERY_SIGNAL(putmem_signal_nbi, void, 1)

uint64_t shmem_signal_fetch(const uint64_t* sig_addr) {
  shmem::must_be_symmetric("shmem_signal_fetch", sig_addr, sizeof *sig_addr);
  return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
}

void shmemx_signal_set(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe) {
  shmem::raise("shmemx_signal_set", sig_addr, signal, SHMEM_SIGNAL_SET, pe_of("shmemx_signal_set", ctx, pe));
}
void shmemx_signal_add(uint64_t* sig_addr, uint64_t signal, int pe) {
  shmem::raise("shmemx_signal_add", sig_addr, signal, SHMEM_SIGNAL_ADD, pe);
}

}  // extern "C"
