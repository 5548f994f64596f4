// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What programs for Cray's XT machines ask the launcher.
#include "lib/portals3/process.hpp"

#include "emu/base/log.hpp"

#include <vector>

#include <cnos_mpi_os.h>
#include <p3rt/p3rt.h>
#include <pmi.h>

namespace {

bool g_joined = false;  // PMI, here

// False: the launcher cannot be spoken to; the log says why.
bool join() {
  PMI_BOOL there = PMI_FALSE;
  if (PMI_Initialized(&there) == PMI_SUCCESS && there == PMI_TRUE) return true;
  int spawned = 0;
  g_joined = PMI_Init(&spawned) == PMI_SUCCESS;
  return g_joined;
}

}  // namespace

extern "C" {

int cnos_get_rank(void) {
  int rank = 0;
  return join() && PMI_Get_rank(&rank) == PMI_SUCCESS ? rank : 0;
}

int cnos_get_size(void) {
  int size = 1;
  return join() && PMI_Get_size(&size) == PMI_SUCCESS ? size : 1;
}

int cnos_get_nidpid_map(cnos_nidpid_map_t** map) {
  static auto* const kept = new std::vector<cnos_nidpid_map_t>;
  unsigned int rank = 0;
  unsigned int size = 0;
  if (map == nullptr || PtlGetRank(orrery::portals3::kNiHandle, &rank, &size) != PTL_OK) return -1;
  kept->resize(size);
  for (unsigned int i = 0; i < size; ++i) {
    ptl_process_id_t id{};
    if (PtlGetRankId(orrery::portals3::kNiHandle, i, &id) != PTL_OK) return -1;
    (*kept)[i] = {id.nid, id.pid};
  }
  *map = kept->data();
  return static_cast<int>(size);
}

void cnos_barrier_init(ptl_handle_ni_t) {}

int cnos_register_ptlid(ptl_process_id_t) { return 0; }

int cnos_barrier(void) { return join() && PMI_Barrier() == PMI_SUCCESS ? 0 : -1; }

void cnos_pm_barrier(int last) {
  if (cnos_barrier() != 0) orrery::log::warn("cnos_pm_barrier: the launcher's barrier failed");
  if (last == 0 || !g_joined) return;
  g_joined = false;
  PMI_Finalize();
}

}  // extern "C"
