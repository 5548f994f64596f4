/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Matching: a target says with an entry which messages may come where; the initiator names bits, not an
 * address. Every process puts a line to the next one and gets it back. The target's program does nothing for
 * either: its NIC does.
 * Run: orrery run -n 4 ./put_get
 */
#include "start.h"

enum { kInbox = 7, kLength = 64 };

int main(void) {
  struct world w = start();
  const ptl_process_t next = w.process[(w.rank + 1) % w.size];
  char inbox[kLength] = "", line[kLength], back[kLength] = "", expected[kLength];
  ptl_handle_me_t me;
  ptl_handle_md_t out, in;

  ptl_me_t box = entry(inbox, sizeof inbox, kInbox, 0);
  MUST(PtlMEAppend(w.ni, kPortal, &box, PTL_PRIORITY_LIST, NULL, &me));
  PMI_Barrier(); /* before it no message may come: nothing would match */

  /* A descriptor is the memory that the initiator reads or writes, and says where it is told of the end. */
  snprintf(line, sizeof line, "greetings from rank %d", w.rank);
  const ptl_md_t from = {line, sizeof line, 0, w.events, PTL_CT_NONE};
  MUST(PtlMDBind(w.ni, &from, &out));
  MUST(PtlPut(out, 0, sizeof line, PTL_ACK_REQ, next, kPortal, kInbox, 0, NULL, 42));
  /* SEND: the line may be changed. ACK: it is there. PUT: one from another has come here. */
  const ptl_event_t came = await(&w, PTL_EVENT_PUT);
  int wrong = came.hdr_data != 42 || came.mlength != kLength;
  PMI_Barrier(); /* now all lines are there */

  const ptl_md_t to = {back, sizeof back, 0, w.events, PTL_CT_NONE};
  MUST(PtlMDBind(w.ni, &to, &in));
  MUST(PtlGet(in, 0, sizeof back, next, kPortal, kInbox, 0, NULL));
  await(&w, PTL_EVENT_REPLY);

  snprintf(expected, sizeof expected, "greetings from rank %d", (w.rank + w.size - 1) % w.size);
  wrong |= strcmp(inbox, expected) != 0 || strcmp(back, line) != 0;
  PMI_Barrier(); /* no PE reads the inbox any more */
  MUST(PtlMEUnlink(me));
  MUST(PtlMDRelease(out));
  MUST(PtlMDRelease(in));
  return finish(&w, "put_get", wrong);
}
