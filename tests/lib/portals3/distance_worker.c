/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * Rank 0 prints how far each process of its program is: "distance RANK HOPS". */
#include <stdio.h>
#include <stdlib.h>

/* As clients of SeaStar say which interface is theirs, before the header that names it. */
#define PTL_IFACE_DEFAULT PTL_IFACE_SS
#include <p3rt/p3rt.h>
#include <pmi.h>
#include <portals3.h>

static void require(int code, const char* what) {
  if (code == PTL_OK) return;
  fprintf(stderr, "%s: %s\n", what, PtlErrorStr(code));
  exit(1);
}

int main(void) {
  ptl_handle_ni_t ni;
  ptl_process_id_t id;
  unsigned rank, size;
  unsigned long distance;
  int spawned;
  PMI_Init(&spawned);
  require(PtlInit(NULL), "PtlInit");
  PtlNIDebug(PTL_INVALID_HANDLE, PTL_DEBUG_ALL | PTL_DEBUG_NI_ALL);
  require(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
  require(PtlGetRank(ni, &rank, &size), "PtlGetRank");
  PMI_Barrier();
  for (unsigned other = 0; rank == 0 && other < size; ++other) {
    require(PtlGetRankId(ni, other, &id), "PtlGetRankId");
    require(PtlNIDist(ni, id, &distance), "PtlNIDist");
    printf("distance %u %lu\n", other, distance);
  }
  PMI_Barrier();
  require(PtlNIFini(ni), "PtlNIFini");
  PtlFini();
  PMI_Finalize();
  return 0;
}
