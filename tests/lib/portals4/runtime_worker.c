/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * A program as those of the first years of Portals 4 are: it knows portals4_runtime.h alone, maps its logical
 * interface by it, and passes a number around the ring. */
#include <stdio.h>
#include <stdlib.h>

#include <portals4.h>
#include <portals4_runtime.h>

#define NEED(what)                                                     \
  do {                                                                 \
    if (!(what)) {                                                     \
      fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #what); \
      exit(1);                                                         \
    }                                                                  \
  } while (0)

int main(void) {
  NEED(PtlInit() == PTL_OK);
  const int rank = runtime_get_rank();
  const int size = runtime_get_size();
  NEED(rank >= 0 && rank < size);
  struct runtime_proc_t* places = NULL;
  NEED(runtime_get_nidpid_map(NULL) == -1);
  NEED(runtime_get_nidpid_map(&places) == size);
  ptl_process_t* map = malloc(sizeof(*map) * (size_t)size);
  NEED(map != NULL);
  for (int i = 0; i < size; ++i) {
    map[i].phys.nid = places[i].nid;
    map[i].phys.pid = places[i].pid;
  }
  ptl_handle_ni_t ni;
  NEED(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni) ==
       PTL_OK);
  ptl_process_t self;
  NEED(PtlGetPhysId(ni, &self) == PTL_OK);
  NEED(self.phys.nid == map[rank].phys.nid && self.phys.pid == map[rank].phys.pid);
  NEED(PtlSetMap(ni, (ptl_size_t)size, map) == PTL_OK);
  NEED(PtlGetId(ni, &self) == PTL_OK && self.rank == (ptl_rank_t)rank);

  ptl_pt_index_t portal;
  NEED(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 3, &portal) == PTL_OK);
  int token = -1;
  ptl_le_t le = {&token, sizeof(token), PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM};
  NEED(PtlCTAlloc(ni, &le.ct_handle) == PTL_OK);
  ptl_handle_le_t entry;
  NEED(PtlLEAppend(ni, portal, &le, PTL_PRIORITY_LIST, NULL, &entry) == PTL_OK);
  int mine = 0;
  ptl_md_t md = {&mine, sizeof(mine), 0, PTL_EQ_NONE, PTL_CT_NONE};
  ptl_handle_md_t source;
  NEED(PtlMDBind(ni, &md, &source) == PTL_OK);
  runtime_barrier();
  ptl_process_t next;
  next.rank = (ptl_rank_t)((rank + 1) % size);
  ptl_ct_event_t count;
  if (rank != 0) {
    NEED(PtlCTWait(le.ct_handle, 1, &count) == PTL_OK && count.failure == 0);
    mine = token + 1;
  }
  NEED(PtlPut(source, 0, sizeof(mine), PTL_NO_ACK_REQ, next, portal, 0, 0, NULL, 0) == PTL_OK);
  if (rank == 0) {
    NEED(PtlCTWait(le.ct_handle, 1, &count) == PTL_OK && count.failure == 0);
    NEED(token == size - 1);
    printf("%d processes, each has had its turn\n", size);
  }
  runtime_barrier();
  NEED(PtlNIFini(ni) == PTL_OK);
  PtlFini();
  free(map);
  return 0;
}
