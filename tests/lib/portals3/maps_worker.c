/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * One process of a ring that no launcher started: its rank and the others' places are in PTL_MY_RID,
 * PTL_NIDMAP and PTL_PIDMAP. Each puts its rank to the next one, until that acknowledges it. */
#include <stdio.h>
#include <stdlib.h>

#include <p3rt/p3rt.h>
#include <p3utils.h>
#include <portals3.h>

static void require(int code, const char* what) {
  if (code == PTL_OK) return;
  fprintf(stderr, "%s: %s\n", what, PtlErrorStr(code));
  exit(1);
}

int main(void) {
  ptl_handle_ni_t ni;
  ptl_process_id_t self, next;
  ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
  ptl_handle_eq_t queue;
  ptl_handle_me_t me;
  ptl_handle_md_t target, source;
  ptl_event_t event;
  unsigned rank, size;
  unsigned got = ~0u;
  int came = 0, heard = 0, which;
  require(PtlInit(NULL), "PtlInit");
  require(PtlSetRank(PTL_INVALID_HANDLE, -1, -1), "PtlSetRank");
  require(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
  require(PtlGetRank(ni, &rank, &size), "PtlGetRank");
  require(PtlGetId(ni, &self), "PtlGetId");
  require(PtlGetRankId(ni, (rank + 1) % size, &next), "PtlGetRankId");
  require(PtlEQAlloc(ni, 64, PTL_EQ_HANDLER_NONE, &queue), "PtlEQAlloc");
  require(PtlMEAttach(ni, 4, any, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &me), "PtlMEAttach");
  ptl_md_t md = {&got,
                 sizeof got,
                 PTL_MD_THRESH_INF,
                 0,
                 PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
                 NULL,
                 queue};
  require(PtlMDAttach(me, md, PTL_RETAIN, &target), "PtlMDAttach");
  md.start = &rank;
  require(PtlMDBind(ni, md, PTL_RETAIN, &source), "PtlMDBind");
  /* The next one may not have attached its entry yet: its node drops what comes before. */
  while (!came || !heard) {
    if (!heard) require(PtlPut(source, PTL_ACK_REQ, next, 4, 0, 1, 0, 0), "PtlPut");
    while (PtlEQPoll(&queue, 1, 20, &event, &which) == PTL_OK) {
      came |= event.type == PTL_EVENT_PUT_END;
      heard |= event.type == PTL_EVENT_ACK;
    }
  }
  printf("%u of %u, nid %u, pid %u: got %u\n", rank, size, self.nid, self.pid, got);
  require(PtlNIFini(ni), "PtlNIFini");
  PtlFini();
  return got == (rank + size - 1) % size ? 0 : 1;
}
