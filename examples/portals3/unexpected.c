/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Messages that come before their receive. An entry at the end of the list catches them, each behind the
 * other (a local offset). A receive is an entry before it, whose descriptor takes nothing at first (threshold
 * 0). PtlMDUpdate makes it take one message, but only if the queue of the unexpected ones is empty: else
 * something has come meanwhile, and the program looks there first. A message that was matched but is not
 * there yet shows by its PUT_START alone. So no message is missed or taken twice.
 * Run: orrery run -n 4 ./unexpected
 */
#include "start.h"

enum { kMessages = 50, kRoom = 4096 };

struct receive {
  uint64_t value;
  int got;
};

int main(void) {
  struct world w = start();
  const ptl_process_id_t next = process(&w, (w.rank + 1) % w.size);
  static char room[kRoom];
  ptl_handle_eq_t unexpected, quiet;
  ptl_handle_me_t last, me;
  ptl_handle_md_t md, out;
  uint64_t early[kMessages];
  int is_early[kMessages] = {0}, coming = 0, wrong = 0;

  MUST(PtlEQAlloc(w.ni, 2 * kMessages, PTL_EQ_HANDLER_NONE, &unexpected));
  MUST(PtlEQAlloc(w.ni, kMessages, PTL_EQ_HANDLER_NONE, &quiet));
  MUST(PtlMEAttach(w.ni, kPortal, kAnyone, 0, ~UINT64_C(0), PTL_RETAIN, PTL_INS_AFTER, &last));
  ptl_md_t catch_all = memory(&w, room, sizeof room, PTL_MD_OP_PUT);
  catch_all.options &= ~PTL_MD_EVENT_START_DISABLE; /* told from the moment of the match on */
  catch_all.eq_handle = unexpected;
  MUST(PtlMDAttach(last, catch_all, PTL_RETAIN, &md));
  cnos_barrier();

  uint64_t value;
  ptl_md_t from = memory(&w, &value, sizeof value, PTL_MD_EVENT_END_DISABLE);
  from.eq_handle = quiet;
  MUST(PtlMDBind(w.ni, from, PTL_RETAIN, &out));
  for (int tag = 0; tag < kMessages; ++tag) {
    value = 1000u * (unsigned)w.rank + (unsigned)tag;
    MUST(PtlPut(out, PTL_ACK_REQ, next, kPortal, kAccess, (ptl_match_bits_t)tag, 0, 0));
    ptl_event_t event;
    MUST(PtlEQWait(quiet, &event)); /* the ACK: `value` is free */

    /* The receive of this tag, posted while others put. */
    struct receive receive = {0, 0};
    ptl_handle_md_t into;
    ptl_md_t wanted = memory(&w, &receive.value, sizeof receive.value, PTL_MD_OP_PUT);
    wanted.threshold = 0;
    MUST(PtlMEInsert(last, kAnyone, (ptl_match_bits_t)tag, 0, PTL_UNLINK, PTL_INS_BEFORE, &me));
    MUST(PtlMDAttach(me, wanted, PTL_UNLINK, &into));
    wanted.threshold = 1;
    for (;;) {
      while (PtlEQGet(unexpected, &event) == PTL_OK) {
        coming += event.type == PTL_EVENT_PUT_START;
        if (event.type != PTL_EVENT_PUT_END) continue;
        --coming;
        early[event.match_bits] = *(uint64_t*)(room + event.offset);
        is_early[event.match_bits] = 1;
      }
      if (is_early[tag]) {
        receive.value = early[tag];
        MUST(PtlMEUnlink(me));
        break;
      }
      if (coming == 0 && PtlMDUpdate(into, NULL, &wanted, unexpected) == PTL_OK) {
        await(&w, PTL_EVENT_PUT_END);
        break;
      }
    }
    wrong |= receive.value != 1000u * (unsigned)((w.rank + w.size - 1) % w.size) + (unsigned)tag;
  }
  return finish(&w, "unexpected", wrong);
}
