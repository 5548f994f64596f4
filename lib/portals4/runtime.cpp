// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What programs ask the launcher by portals4_runtime.h.
#include "emu/base/log.hpp"
#include "lib/portals4/process.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <pmi.h>
#include <portals4_runtime.h>

namespace {

using orrery::portals4::Process;

void leave() {
  PMI_BOOL there = PMI_FALSE;
  if (PMI_Initialized(&there) == PMI_SUCCESS && there == PMI_TRUE) PMI_Finalize();
}

// False: the launcher cannot be spoken to; the log says why.
bool join() {
  PMI_BOOL there = PMI_FALSE;
  if (PMI_Initialized(&there) == PMI_SUCCESS && there == PMI_TRUE) return true;
  int spawned = 0;
  if (PMI_Init(&spawned) != PMI_SUCCESS) return false;
  return std::atexit(leave) == 0;
}

// The id that this process has, or will have.
bool own_place(runtime_proc_t* place) {
  Process& process = Process::get();
  const std::lock_guard lock(process.mu);
  if (process.is_signed_on()) {
    *place = {process.nid(), process.pid()};
    return true;
  }
  std::uint32_t pid = 0;
  if (!process.prepare(&pid)) return false;
  *place = {process.nid(), pid};
  return true;
}

std::string key_of(int rank) { return "portals4-place-" + std::to_string(rank); }

// Each tells its place; then each reads all.
bool exchange(std::vector<runtime_proc_t>* places) {
  std::array<char, 256> name{};
  runtime_proc_t own{};
  if (!join() || !own_place(&own)) return false;
  const std::string place = std::to_string(own.nid) + ":" + std::to_string(own.pid);
  if (PMI_KVS_Get_my_name(name.data(), static_cast<int>(name.size())) != PMI_SUCCESS ||
      PMI_KVS_Put(name.data(), key_of(runtime_get_rank()).c_str(), place.c_str()) != PMI_SUCCESS ||
      PMI_KVS_Commit(name.data()) != PMI_SUCCESS || PMI_Barrier() != PMI_SUCCESS)
    return false;
  places->resize(static_cast<std::size_t>(runtime_get_size()));
  for (std::size_t rank = 0; rank < places->size(); ++rank) {
    std::array<char, 64> value{};
    runtime_proc_t& one = (*places)[rank];
    if (PMI_KVS_Get(name.data(), key_of(static_cast<int>(rank)).c_str(), value.data(),
                    static_cast<int>(value.size())) != PMI_SUCCESS ||
        std::sscanf(value.data(), "%u:%u", &one.nid, &one.pid) != 2)
      return false;
  }
  return true;
}

}  // namespace

extern "C" {

int runtime_get_rank(void) {
  int rank = 0;
  return join() && PMI_Get_rank(&rank) == PMI_SUCCESS ? rank : 0;
}

int runtime_get_size(void) {
  int size = 1;
  return join() && PMI_Get_size(&size) == PMI_SUCCESS ? size : 1;
}

int runtime_get_nidpid_map(struct runtime_proc_t** map) {
  static auto* const kept = new std::vector<runtime_proc_t>;
  if (map == nullptr) return -1;
  if (kept->empty() && !exchange(kept)) {
    orrery::log::error("runtime_get_nidpid_map: the places of the ranks cannot be had");
    kept->clear();
    return -1;
  }
  *map = kept->data();
  return static_cast<int>(kept->size());
}

void runtime_barrier(void) {
  if (!join() || PMI_Barrier() != PMI_SUCCESS)
    orrery::log::error("runtime_barrier: the launcher's barrier failed");
}

}  // extern "C"
