// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/job/host_directory.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace orrery::job {

// Says in the directory, while it lives, in which call the calling thread sleeps, so that the report of a
// hang names it. Of more threads than layout::kCallLines the last ones are not told of.
//
// Threads: made and destroyed by one. Ownership: none. REQUIRES: the directory outlives it.
// Usage: const WaitingCall here(directory, self, __func__); sleep();
class WaitingCall {
 public:
  WaitingCall(const HostDirectory& directory, ProcessRef self, const char* call);
  ~WaitingCall();
  WaitingCall(const WaitingCall&) = delete;
  WaitingCall& operator=(const WaitingCall&) = delete;

 private:
  layout::CallLine* line_ = nullptr;
};

struct SleepingThread {
  pid_t thread = 0;
  std::string call;
  std::int64_t since_ns = 0;  // CLOCK_MONOTONIC
};

// The threads of a process that sleep in calls, the one that sleeps longest first. The names are the
// process's own words: what is neither letter, digit nor '_' ends them.
std::vector<SleepingThread> sleeping_threads(const HostDirectory& directory, ProcessRef process);

}  // namespace orrery::job
