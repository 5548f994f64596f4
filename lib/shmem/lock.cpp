// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/lock_loss.hpp"
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

// Ends the job where a call of the lock failed. Its host is named only where the lock's own memory is gone.
void must_work(const char* call, dmapp_return_t rc, const long* lock, int host) {
  if (rc == DMAPP_RC_SUCCESS) [[likely]]
    return;
  if (rc == DMAPP_RC_RESOURCE_ERROR)
    fail(call, "%s", "this PE holds as many locks as it may: DMAPP_MAX_LOCKS, 1 to 1023, sets it (128)");
  if (rc == DMAPP_RC_TRANSACTION_ERROR) {
    if (const int pe = dmapp::lock_lost_with(); pe >= 0)
      fail(call, "PE %d has ended while it held the lock at %p, or waited for it", pe,
           static_cast<const void*>(lock));
    if (host == g_job.pe || !has_just_ended(host)) fail_if_a_pe_just_ended(call);
  }
  must(call, rc, lock, sizeof *lock, host);
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
  shmem::must_work("shmem_set_lock", rc, lock, host);
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
  shmem::must_work("shmem_test_lock", rc, lock, host);
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
  shmem::must_work("shmem_clear_lock", rc, lock, host);
}

}  // extern "C"
