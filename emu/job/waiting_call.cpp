// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/waiting_call.hpp"

#include "emu/base/wait.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

#include <sys/syscall.h>
#include <unistd.h>

namespace orrery::job {

namespace {

std::uint32_t own_thread() {
  static thread_local struct {
    pid_t process = 0;
    std::uint32_t thread = 0;
  } known;
  // A child of fork() has its parent's thread-local values.
  if (const pid_t process = getpid(); known.process != process)
    known = {process, static_cast<std::uint32_t>(syscall(SYS_gettid))};
  return known.thread;
}

}  // namespace

WaitingCall::WaitingCall(const HostDirectory& directory, ProcessRef self, const char* call) {
  if (self.index >= HostDirectory::kMaxProcesses) return;
  const std::uint64_t claim = std::uint64_t{self.generation} << 32 | own_thread();
  for (layout::CallLine& line : directory.calls_of(self.index)) {
    std::uint64_t seen = line.claim.load(std::memory_order_relaxed);
    if (seen != 0 && seen >> 32 == self.generation) continue;
    if (!line.claim.compare_exchange_strong(seen, claim, std::memory_order_acq_rel)) continue;
    line.since.store(0, std::memory_order_relaxed);
    std::uint64_t words[layout::kCallNameBytes / 8] = {};
    std::memcpy(words, call, std::min(std::strlen(call), sizeof words));
    for (std::size_t i = 0; i < std::size(words); ++i)
      line.name[i].store(words[i], std::memory_order_relaxed);
    // Release: a reader that sees the time sees the name.
    line.since.store(monotonic_ns(), std::memory_order_release);
    line_ = &line;
    return;
  }
}

WaitingCall::~WaitingCall() {
  if (line_ == nullptr) return;
  line_->since.store(0, std::memory_order_relaxed);
  line_->claim.store(0, std::memory_order_release);
}

std::vector<SleepingThread> sleeping_threads(const HostDirectory& directory, ProcessRef process) {
  std::vector<SleepingThread> found;
  if (process.index >= HostDirectory::kMaxProcesses) return found;
  for (const layout::CallLine& line : directory.calls_of(process.index)) {
    const std::uint64_t claim = line.claim.load(std::memory_order_acquire);
    const std::int64_t since = line.since.load(std::memory_order_acquire);
    if (claim == 0 || claim >> 32 != process.generation || since <= 0) continue;
    char name[layout::kCallNameBytes + 1] = {};
    for (std::size_t i = 0; i < std::size(line.name); ++i) {
      // Acquire: the claim below is not read before these.
      const std::uint64_t word = line.name[i].load(std::memory_order_acquire);
      std::memcpy(name + i * sizeof word, &word, sizeof word);
    }
    if (line.claim.load(std::memory_order_relaxed) != claim) continue;
    const char* end = name;
    while (std::isalnum(static_cast<unsigned char>(*end)) != 0 || *end == '_') ++end;
    if (end == name) continue;
    found.push_back(
        {static_cast<pid_t>(claim & UINT32_MAX), std::string(static_cast<const char*>(name), end), since});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.since_ns < b.since_ns; });
  return found;
}

}  // namespace orrery::job
