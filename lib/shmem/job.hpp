// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "include/dmapp/dmapp.h"

#include <cstdint>

// This process as a PE of OpenSHMEM: what shmem_init learned of DMAPP, and how calls end that cannot go on.
namespace orrery::shmem {

// A part of memory that every PE has: the symmetric heap or the program's static variables.
struct Region {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  dmapp_seg_desc_t segment{};
};

// Threads: constant between init and finalize.
struct Job {
  bool up = false;
  bool ended = false;
  int pe = -1;
  int npes = 0;
  int level = 0;
  Region heap;
  Region data;
  bool clocked = false;  // under a machine's clock
};
extern Job g_job;

// Ends the job with one line that says why.
[[noreturn]] void fail(const char* call, const char* format, ...) __attribute__((format(printf, 2, 3)));
// The same for a request that DMAPP refused or that did not come to a good end: names the address and the
// regions.
[[noreturn]] void fail_request(const char* call, dmapp_return_t rc, const void* address, std::uint64_t bytes,
                               int pe);
inline void must(const char* call, dmapp_return_t rc, const void* address, std::uint64_t bytes, int pe) {
  if (rc != DMAPP_RC_SUCCESS) [[unlikely]]
    fail_request(call, rc, address, bytes, pe);
}
// Calls before shmem_init and after shmem_finalize end here.
inline void must_be_up(const char* call) {
  if (!g_job.up) [[unlikely]]
    fail(call, "%s", g_job.ended ? "shmem_finalize has been called" : "shmem_init has not been called");
}

}  // namespace orrery::shmem
