// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/shmem/access.hpp"
#include "lib/shmem/group.hpp"
#include "lib/shmem/profiling.hpp"

#include "include/shmem/shmem.h"

#include <cstring>

// Collectives that move data, over teams and active sets.
namespace orrery::shmem {

namespace {

// The team's set, or none. `call` has failed then, and says so once.
const Set* set_of(const char* call, shmem_team_t team) {
  must_be_up(call);
  const Team* const one = find_team(call, team);
  return one == nullptr ? nullptr : &one->set;
}

void check_root(const char* call, int root, const Set& set) {
  if (root < 0 || root >= set.size) fail(call, "PE_root %d: expected 0 to %d", root, set.size - 1);
}

int broadcast(const char* call, shmem_team_t team, void* dest, const void* source, std::size_t bytes,
              int root) {
  const Set* const set = set_of(call, team);
  if (set == nullptr) return -1;
  check_root(call, root, *set);
  must_be_symmetric(call, dest, bytes);
  if (set->me == root && dest != source && bytes != 0) std::memmove(dest, source, bytes);
  group::broadcast(*set, dest, source, bytes, root);
  return 0;
}

template <void (*kCollective)(const Set&, void*, const void*, std::size_t)>
int collective(const char* call, shmem_team_t team, void* dest, const void* source, std::size_t bytes) {
  const Set* const set = set_of(call, team);
  if (set == nullptr) return -1;
  kCollective(*set, dest, source, bytes);
  return 0;
}

int alltoalls(const char* call, shmem_team_t team, void* dest, const void* source, std::ptrdiff_t dst,
              std::ptrdiff_t sst, std::size_t nelems, std::size_t width) {
  const Set* const set = set_of(call, team);
  if (set == nullptr) return -1;
  group::alltoalls(*set, dest, source, dst, sst, nelems, width);
  return 0;
}

}  // namespace

}  // namespace orrery::shmem

namespace shmem = orrery::shmem;
namespace group = orrery::shmem::group;

#define ORRERY_TEAM(PREFIX, SUFFIX, T, BYTES)                                                           \
  int shmem_##PREFIX##broadcast##SUFFIX(shmem_team_t team, T* dest, const T* source, size_t nelems,     \
                                        int PE_root) {                                                  \
    return shmem::broadcast("shmem_" #PREFIX "broadcast" #SUFFIX, team, dest, source,                   \
                            shmem::bytes_of(nelems, BYTES), PE_root);                                   \
  }                                                                                                     \
  int shmem_##PREFIX##collect##SUFFIX(shmem_team_t team, T* dest, const T* source, size_t nelems) {     \
    return shmem::collective<group::collect>("shmem_" #PREFIX "collect" #SUFFIX, team, dest, source,    \
                                             shmem::bytes_of(nelems, BYTES));                           \
  }                                                                                                     \
  int shmem_##PREFIX##fcollect##SUFFIX(shmem_team_t team, T* dest, const T* source, size_t nelems) {    \
    return shmem::collective<group::fcollect>("shmem_" #PREFIX "fcollect" #SUFFIX, team, dest, source,  \
                                              shmem::bytes_of(nelems, BYTES));                          \
  }                                                                                                     \
  int shmem_##PREFIX##alltoall##SUFFIX(shmem_team_t team, T* dest, const T* source, size_t nelems) {    \
    return shmem::collective<group::alltoall>("shmem_" #PREFIX "alltoall" #SUFFIX, team, dest, source,  \
                                              shmem::bytes_of(nelems, BYTES));                          \
  }                                                                                                     \
  int shmem_##PREFIX##alltoalls##SUFFIX(shmem_team_t team, T* dest, const T* source, ptrdiff_t dst,     \
                                        ptrdiff_t sst, size_t nelems) {                                 \
    return shmem::alltoalls("shmem_" #PREFIX "alltoalls" #SUFFIX, team, dest, source, dst, sst, nelems, \
                            BYTES);                                                                     \
  }
#define ORRERY_TYPED(T, N, A) ORRERY_TEAM(N##_, , T, sizeof(T))

#define ORRERY_SET_TAIL int PE_start, int logPE_stride, int PE_size, long *pSync
#define ORRERY_SET(CALL) shmem::active_set(CALL, PE_start, logPE_stride, PE_size, pSync)
#define ORRERY_ACTIVE(B)                                                                                 \
  void shmem_broadcast##B(void* dest, const void* source, size_t nelems, int PE_root, ORRERY_SET_TAIL) { \
    const shmem::Set set = ORRERY_SET("shmem_broadcast" #B);                                             \
    shmem::check_root("shmem_broadcast" #B, PE_root, set);                                               \
    group::broadcast(set, dest, source, shmem::bytes_of(nelems, (B) / 8), PE_root);                      \
  }                                                                                                      \
  void shmem_collect##B(void* dest, const void* source, size_t nelems, ORRERY_SET_TAIL) {                \
    group::collect(ORRERY_SET("shmem_collect" #B), dest, source, shmem::bytes_of(nelems, (B) / 8));      \
  }                                                                                                      \
  void shmem_fcollect##B(void* dest, const void* source, size_t nelems, ORRERY_SET_TAIL) {               \
    group::fcollect(ORRERY_SET("shmem_fcollect" #B), dest, source, shmem::bytes_of(nelems, (B) / 8));    \
  }                                                                                                      \
  void shmem_alltoall##B(void* dest, const void* source, size_t nelems, ORRERY_SET_TAIL) {               \
    group::alltoall(ORRERY_SET("shmem_alltoall" #B), dest, source, shmem::bytes_of(nelems, (B) / 8));    \
  }                                                                                                      \
  void shmem_alltoalls##B(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,   \
                          ORRERY_SET_TAIL) {                                                             \
    group::alltoalls(ORRERY_SET("shmem_alltoalls" #B), dest, source, dst, sst, nelems, (B) / 8);         \
  }

extern "C" {

SHMEM_NAMES_COLLECTIVE_(ORRERY_PROFILED)
// C++ has an overload of this name.
void shmem_sync(int PE_start, int logPE_stride, int PE_size, long* pSync) __attribute__((weak));
void pshmem_sync(int PE_start, int logPE_stride, int PE_size, long* pSync)
    __attribute__((alias("shmem_sync")));

SHMEM_RMA_TYPES_(ORRERY_TYPED, 0)
ORRERY_TEAM(, mem, void, 1)
ORRERY_ACTIVE(32)
ORRERY_ACTIVE(64)

void shmem_sync_all(void) {
  shmem::must_be_up("shmem_sync_all");
  group::sync(shmem::world_team().set);
}

void shmem_barrier_all(void) {
  shmem::must_be_up("shmem_barrier_all");
  shmem::quiet("shmem_barrier_all");
  group::sync(shmem::world_team().set);
}

int shmem_team_sync(shmem_team_t team) {
  const shmem::Set* const set = shmem::set_of("shmem_team_sync", team);
  if (set == nullptr) return -1;
  group::sync(*set);
  return 0;
}

void shmem_sync(int PE_start, int logPE_stride, int PE_size, long* pSync) {
  group::sync(ORRERY_SET("shmem_sync"));
}

void shmem_barrier(int PE_start, int logPE_stride, int PE_size, long* pSync) {
  const shmem::Set set = ORRERY_SET("shmem_barrier");
  shmem::quiet("shmem_barrier");
  group::sync(set);
}

}  // extern "C"
