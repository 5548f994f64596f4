// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/shmem/life.hpp"

#include "emu/base/patient_yield.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/host/runtime.hpp"
#include "lib/shmem/job.hpp"

#include "include/pmi/pmi.h"

#include <algorithm>
#include <vector>

namespace orrery::shmem {

namespace {

struct Said {
  std::int32_t pe;
  std::int32_t level;
  std::uint64_t slot;
  std::uint32_t generation;
};

nic::Runtime* g_runtime = nullptr;
std::vector<nic::ProcessName> g_names;  // by PE; constant after start_life

}  // namespace

int start_life(int level) {
  constexpr const char* kCall = "shmem_init";
  const auto runtime = nic::Runtime::of_process();
  if (!runtime.ok()) fail(kCall, "%s", "no NIC");
  g_runtime = runtime.value();
  const nic::ProcessName self = g_runtime->self();
  Said mine{.pe = g_job.pe, .level = level, .slot = self.slot, .generation = self.generation};
  std::vector<Said> all(static_cast<std::size_t>(g_job.npes));
  if (PMI_Allgather(&mine, all.data(), sizeof mine) != PMI_SUCCESS) fail(kCall, "%s", "PMI_Allgather failed");
  g_names.assign(all.size(), self);
  int highest = level;
  for (const Said& one : all) {
    if (one.pe < 0 || one.pe >= g_job.npes) fail(kCall, "PMI_Allgather brought a PE %d", one.pe);
    nic::ProcessName& name = g_names[static_cast<std::size_t>(one.pe)];
    name = {static_cast<wire::ProcessSlot>(one.slot), one.generation};
    if (one.pe != g_job.pe) g_runtime->watch(name);
    highest = std::max(highest, one.level);
  }
  return highest;
}

int pe_that_is_gone() {
  for (int pe = 0; pe < g_job.npes; ++pe)
    if (pe != g_job.pe && !g_runtime->alive(g_names[static_cast<std::size_t>(pe)])) return pe;
  return -1;
}

void fail_if_a_pe_is_gone(const char* call) {
  if (const int pe = pe_that_is_gone(); pe >= 0) fail(call, "PE %d has ended while this PE waits", pe);
}

void fail_if_a_pe_just_ended(const char* call) {
  PatientYield yield;
  for (const std::int64_t until = monotonic_ns() + kEndNs; monotonic_ns() < until; yield())
    fail_if_a_pe_is_gone(call);
}

bool has_just_ended(int pe) {
  if (pe < 0 || static_cast<std::size_t>(pe) >= g_names.size()) return false;
  PatientYield yield;
  for (const std::int64_t until = monotonic_ns() + kEndNs; monotonic_ns() < until; yield())
    if (!g_runtime->alive(g_names[static_cast<std::size_t>(pe)])) return true;
  return false;
}

void look_who_lives(const char* call) {
  static thread_local std::int64_t t_look_at = 0;
  const std::int64_t now = monotonic_ns();
  if (now < t_look_at) return;
  t_look_at = now + kLookNs;
  fail_if_a_pe_is_gone(call);
}

}  // namespace orrery::shmem
