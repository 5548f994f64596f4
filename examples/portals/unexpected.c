/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Messages that come before their entry: an entry of the overflow list catches them, and the NIC keeps their
 * headers. An entry that is appended later takes the first header that it would have matched, and is told
 * where the bytes lie. This is what every message-passing library does with messages before their receive.
 * Run: orrery run -n 4 ./unexpected
 */
#include "start.h"

enum { kMessages = 3, kRoom = 4096 };

int main(void) {
  struct world w = start();
  const ptl_process_t next = w.process[(w.rank + 1) % w.size];
  static char room[kRoom];
  uint64_t value;
  ptl_handle_me_t me;
  ptl_handle_md_t md;
  int wrong = 0;

  /* Takes everything, one message behind the other. Its own events tell nothing of interest. */
  ptl_me_t overflow = entry(room, sizeof room, 0, PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_COMM_DISABLE);
  overflow.ignore_bits = ~UINT64_C(0);
  MUST(PtlMEAppend(w.ni, kPortal, &overflow, PTL_OVERFLOW_LIST, NULL, &me));
  PMI_Barrier();

  const ptl_md_t from = {&value, sizeof value, 0, w.events, PTL_CT_NONE};
  MUST(PtlMDBind(w.ni, &from, &md));
  for (uint64_t tag = 1; tag <= kMessages; ++tag) {
    value = 100 * tag + (uint64_t)w.rank;
    MUST(PtlPut(md, 0, sizeof value, PTL_ACK_REQ, next, kPortal, tag, 0, NULL, 0));
    await(&w, PTL_EVENT_ACK); /* it is there, before its entry */
  }
  PMI_Barrier();

  /* Now it is asked for, the last tag first. */
  for (uint64_t tag = kMessages; tag >= 1; --tag) {
    ptl_me_t wanted = entry(NULL, sizeof value, tag, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
    MUST(PtlMEAppend(w.ni, kPortal, &wanted, PTL_PRIORITY_LIST, NULL, &me));
    const ptl_event_t found = await(&w, PTL_EVENT_PUT_OVERFLOW);
    uint64_t got;
    memcpy(&got, found.start, sizeof got);
    wrong |= got != 100 * tag + (uint64_t)((w.rank + w.size - 1) % w.size);
  }

  /* Nothing is left: a search says so. */
  ptl_me_t any = entry(NULL, 0, 0, PTL_ME_USE_ONCE);
  any.ignore_bits = ~UINT64_C(0);
  ptl_event_t event;
  MUST(PtlMESearch(w.ni, kPortal, &any, PTL_SEARCH_ONLY, NULL));
  do MUST(PtlEQWait(w.events, &event));
  while (event.type != PTL_EVENT_SEARCH);
  wrong |= event.ni_fail_type != PTL_NI_NO_MATCH;
  return finish(&w, "unexpected", wrong);
}
