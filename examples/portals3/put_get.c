/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * A match entry says which messages are meant, the memory descriptor that is attached to it where they go and
 * how: here at the offset that the initiator gives (PTL_MD_MANAGE_REMOTE). Every process puts a line to the
 * next one and gets it back. A put tells its initiator SEND_END (the memory may be changed) and ACK (it is
 * there), its target PUT_END; a get tells REPLY_END and GET_END.
 * Run: orrery run -n 4 ./put_get
 */
#include "start.h"

enum { kBits = 7, kLength = 64 };

int main(void) {
  struct world w = start();
  const ptl_process_id_t next = process(&w, (w.rank + 1) % w.size);
  char inbox[kLength] = "", line[kLength], back[kLength] = "", expected[kLength];
  ptl_handle_me_t me;
  ptl_handle_md_t target, out, in;

  MUST(PtlMEAttach(w.ni, kPortal, kAnyone, kBits, 0, PTL_UNLINK, PTL_INS_AFTER, &me));
  const ptl_md_t box = memory(&w, inbox, kLength, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE);
  MUST(PtlMDAttach(me, box, PTL_UNLINK, &target));
  cnos_barrier(); /* what comes before it would be dropped: nothing would match */

  snprintf(line, sizeof line, "greetings from rank %d", w.rank);
  MUST(PtlMDBind(w.ni, memory(&w, line, kLength, 0), PTL_RETAIN, &out));
  MUST(PtlPut(out, PTL_ACK_REQ, next, kPortal, kAccess, kBits, 0, 42));
  ptl_event_t event;
  int told = 0, wrong = 0;
  while (told != 7) { /* in what order PUT_END comes, others decide */
    MUST(PtlEQWait(w.events, &event));
    told |= event.type == PTL_EVENT_SEND_END  ? 1
            : event.type == PTL_EVENT_ACK     ? 2
            : event.type == PTL_EVENT_PUT_END ? 4
                                              : 0;
    wrong |= event.mlength != kLength || event.ni_fail_type != PTL_NI_OK;
  }
  cnos_barrier(); /* now all lines are there */

  MUST(PtlMDBind(w.ni, memory(&w, back, kLength, 0), PTL_RETAIN, &in));
  MUST(PtlGet(in, next, kPortal, kAccess, kBits, 0));
  await(&w, PTL_EVENT_REPLY_END);
  snprintf(expected, sizeof expected, "greetings from rank %d", (w.rank + w.size - 1) % w.size);
  wrong |= strcmp(inbox, expected) != 0 || strcmp(back, line) != 0;
  return finish(&w, "put_get", wrong);
}
