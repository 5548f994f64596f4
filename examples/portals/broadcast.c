/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Triggered operations: each process tells its NIC what to do when its own part of the tree has come, and
 * then does something else. The broadcast runs down the tree, and the count of arrivals up again, while every
 * program but the root's is away; the NICs do it all.
 * Run: orrery run -n 7 ./broadcast
 */
#include "start.h"

enum { kDown = 1, kUp = 2 };

int main(void) {
  struct world w = start();
  uint64_t value = w.rank == 0 ? 2026 : 0, nothing = 0;
  ptl_handle_ct_t down, up;
  ptl_handle_me_t me;
  ptl_handle_md_t md;
  int children = 0;

  /* Two counters, each counted up by the messages that come into an entry. No event is raised at all. */
  MUST(PtlCTAlloc(w.ni, &down));
  MUST(PtlCTAlloc(w.ni, &up));
  ptl_me_t from_parent = entry(&value, sizeof value, kDown, PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM);
  from_parent.ct_handle = down;
  MUST(PtlMEAppend(w.ni, kPortal, &from_parent, PTL_PRIORITY_LIST, NULL, &me));
  ptl_me_t from_children = entry(&nothing, 0, kUp, PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM);
  from_children.ct_handle = up;
  MUST(PtlMEAppend(w.ni, kPortal, &from_children, PTL_PRIORITY_LIST, NULL, &me));

  const ptl_md_t memory = {&value, sizeof value, 0, PTL_EQ_NONE, PTL_CT_NONE};
  MUST(PtlMDBind(w.ni, &memory, &md));
  /* What is put is what stands there when the trigger fires: the value that came. */
  for (int child = 2 * w.rank + 1; child <= 2 * w.rank + 2 && child < w.size; ++child, ++children)
    MUST(PtlTriggeredPut(md, 0, sizeof value, PTL_NO_ACK_REQ, w.process[child], kPortal, kDown, 0, NULL, 0,
                         down, 1));
  if (w.rank != 0) {
    const ptl_process_t parent = w.process[(w.rank - 1) / 2];
    /* An inner process answers when all its children have, a leaf when the value has come. */
    MUST(PtlTriggeredPut(md, 0, 0, PTL_NO_ACK_REQ, parent, kPortal, kUp, 0, NULL, 0, children > 0 ? up : down,
                         children > 0 ? (ptl_size_t)children : 1));
  }
  PMI_Barrier();

  if (w.rank == 0) {
    ptl_ct_event_t count;
    const ptl_ct_event_t one = {1, 0};
    MUST(PtlCTInc(down, one)); /* the root's own part has come: off it goes */
    if (children > 0) MUST(PtlCTWait(up, (ptl_size_t)children, &count));
  }
  PMI_Barrier(); /* the others are here already: their NICs work meanwhile */
  return finish(&w, "broadcast", value != 2026);
}
