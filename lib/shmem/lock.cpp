// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/shmem/access.hpp"
#include "lib/shmem/life.hpp"
#include "lib/shmem/profiling.hpp"

#include "include/shmem/shmem.h"

// Locks: DMAPP's, whose waiters queue. A lock's host is one of the PEs, by its place in the region, so that
// not all locks are PE 0's.
namespace orrery::shmem {

namespace {

static_assert(sizeof(long) == sizeof(dmapp_lock_desc_t));

int host_of(const long* lock) {
  const dmapp_seg_desc_t& segment = *segment_of(lock);
  const std::uint64_t offset =
      reinterpret_cast<std::uint64_t>(lock) - reinterpret_cast<std::uint64_t>(segment.addr);
  return static_cast<int>(offset / sizeof *lock % static_cast<std::uint64_t>(g_job.npes));
}

void must_have_place(const char* call, dmapp_return_t rc) {
  if (rc == DMAPP_RC_RESOURCE_ERROR)
    fail(call, "%s", "this PE holds as many locks as it may: DMAPP_MAX_LOCKS, 1 to 1023, sets it (128)");
}

dmapp_lock_desc_t* descriptor(long* lock) { return reinterpret_cast<dmapp_lock_desc_t*>(lock); }

}  // namespace

}  // namespace orrery::shmem

namespace shmem = orrery::shmem;

extern "C" {

SHMEM_NAMES_LOCK_(ORRERY_PROFILED)

void shmem_set_lock(long* lock) {
  shmem::must_be_up("shmem_set_lock");
  const int host = shmem::host_of(lock);
  dmapp_lock_handle_t handle;
  const dmapp_return_t rc =
      dmapp_lock_acquire(shmem::descriptor(lock), shmem::segment_of(lock), host, 0, &handle);
  shmem::must_have_place("shmem_set_lock", rc);
  shmem::must("shmem_set_lock", rc, lock, sizeof *lock, host);
}

int shmem_test_lock(long* lock) {
  shmem::must_be_up("shmem_test_lock");
  const int host = shmem::host_of(lock);
  dmapp_lock_handle_t handle;
  const dmapp_return_t rc =
      dmapp_lock_try(shmem::descriptor(lock), shmem::segment_of(lock), host, 0, &handle);
  if (rc == DMAPP_RC_BUSY) {
    (void)dmapp_progress();
    shmem::look_who_lives("shmem_test_lock");
    return 1;
  }
  shmem::must_have_place("shmem_test_lock", rc);
  shmem::must("shmem_test_lock", rc, lock, sizeof *lock, host);
  return 0;
}

void shmem_clear_lock(long* lock) {
  shmem::must_be_up("shmem_clear_lock");
  // What was written under the lock is there when another PE takes it.
  shmem::quiet("shmem_clear_lock");
  const int host = shmem::host_of(lock);
  const dmapp_return_t rc = dmapp_lock_release_addr(shmem::descriptor(lock), host, 0);
  if (rc == DMAPP_RC_NOT_FOUND)
    shmem::fail("shmem_clear_lock", "this PE does not hold the lock at %p", static_cast<void*>(lock));
  shmem::must("shmem_clear_lock", rc, lock, sizeof *lock, host);
}

}  // extern "C"
