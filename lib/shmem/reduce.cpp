// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/shmem/access.hpp"
#include "lib/shmem/combine.hpp"
#include "lib/shmem/group.hpp"
#include "lib/shmem/profiling.hpp"

#include "include/shmem/shmem.h"

// Reductions over teams and active sets.
namespace orrery::shmem {

namespace {

int reduce(const char* call, shmem_team_t team, void* dest, const void* source, std::size_t nelems,
           std::size_t width, const Reduction& reduction) {
  must_be_up(call);
  const Team* const one = find_team(call, team);
  if (one == nullptr) return -1;
  must_be_symmetric(call, dest, bytes_of(nelems, width));
  group::reduce(one->set, dest, source, nelems, width, reduction);
  return 0;
}

void reduce(const char* call, const Set& set, void* dest, const void* source, int nreduce, std::size_t width,
            const Reduction& reduction) {
  if (nreduce < 0) fail(call, "nreduce %d: expected 0 or more", nreduce);
  const auto nelems = static_cast<std::size_t>(nreduce);
  must_be_symmetric(call, dest, bytes_of(nelems, width));
  group::reduce(set, dest, source, nelems, width, reduction);
}

}  // namespace

}  // namespace orrery::shmem

namespace shmem = orrery::shmem;

#define ORRERY_REDUCE(T, N, OP)                                                                 \
  int shmem_##N##_##OP##_reduce(shmem_team_t team, T* dest, const T* source, size_t nreduce) {  \
    return shmem::reduce("shmem_" #N "_" #OP "_reduce", team, dest, source, nreduce, sizeof(T), \
                         shmem::reduction_##OP<T>());                                           \
  }
#define ORRERY_TO_ALL(T, N, OP)                                                                         \
  void shmem_##N##_##OP##_to_all(T* dest, const T* source, int nreduce, int PE_start, int logPE_stride, \
                                 int PE_size, T* /*pWrk*/, long* pSync) {                               \
    constexpr const char* call = "shmem_" #N "_" #OP "_to_all";                                         \
    shmem::reduce(call, shmem::active_set(call, PE_start, logPE_stride, PE_size, pSync), dest, source,  \
                  nreduce, sizeof(T), shmem::reduction_##OP<T>());                                      \
  }

extern "C" {

SHMEM_NAMES_REDUCE_(ORRERY_PROFILED)

SHMEM_REDUCE_BITWISE_TYPES_(ORRERY_REDUCE, and)
SHMEM_REDUCE_BITWISE_TYPES_(ORRERY_REDUCE, or)
SHMEM_REDUCE_BITWISE_TYPES_(ORRERY_REDUCE, xor)
SHMEM_REDUCE_MINMAX_TYPES_(ORRERY_REDUCE, min)
SHMEM_REDUCE_MINMAX_TYPES_(ORRERY_REDUCE, max)
SHMEM_REDUCE_ARITH_TYPES_(ORRERY_REDUCE, sum)
SHMEM_REDUCE_ARITH_TYPES_(ORRERY_REDUCE, prod)
SHMEM_TO_ALL_BITWISE_(ORRERY_TO_ALL, and)
SHMEM_TO_ALL_BITWISE_(ORRERY_TO_ALL, or)
SHMEM_TO_ALL_BITWISE_(ORRERY_TO_ALL, xor)
SHMEM_TO_ALL_MINMAX_(ORRERY_TO_ALL, min)
SHMEM_TO_ALL_MINMAX_(ORRERY_TO_ALL, max)
SHMEM_TO_ALL_ARITH_(ORRERY_TO_ALL, sum)
SHMEM_TO_ALL_ARITH_(ORRERY_TO_ALL, prod)

}  // extern "C"
