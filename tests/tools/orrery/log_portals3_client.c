/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* Calls of Portals 3.3 whose lines log_test.cpp expects: a put to this process itself. */
#include <portals3.h>
#include <stddef.h>

#define MUST(call) \
  if ((call) != PTL_OK) return __LINE__

int main(void) {
  int interfaces;
  ptl_handle_ni_t ni;
  ptl_handle_eq_t events;
  ptl_handle_me_t last, entry;
  ptl_handle_md_t from_md, to_md;
  ptl_process_id_t id;
  ptl_event_t event;
  uint64_t from = 7, to = 0;
  const ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
  MUST(PtlInit(&interfaces));
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni));
  MUST(PtlGetId(ni, &id));
  MUST(PtlEQAlloc(ni, 10, PTL_EQ_HANDLER_NONE, &events));
  MUST(PtlMEAttach(ni, 4, any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &last));
  const ptl_md_t room = {&to, sizeof to, 1, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, NULL, events};
  MUST(PtlMEMDPost(ni, last, any, 42, 0, PTL_UNLINK, PTL_INS_BEFORE, room, PTL_RETAIN, &entry, &to_md,
                   events));
  const ptl_md_t source = {&from, sizeof from, PTL_MD_THRESH_INF, 0, PTL_MD_EVENT_START_DISABLE,
                           NULL,  PTL_EQ_NONE};
  MUST(PtlMDBind(ni, source, PTL_RETAIN, &from_md));
  for (int look = 0; look < 10; look++)
    if (PtlEQGet(events, &event) != PTL_EQ_EMPTY) return __LINE__;
  MUST(PtlPut(from_md, PTL_NO_ACK_REQ, id, 4, 0, 42, 0, 9));
  MUST(PtlEQWait(events, &event));
  MUST(PtlMEUnlink(last));
  MUST(PtlNIFini(ni));
  PtlFini();
  return PtlEQFree(events) != PTL_NO_INIT || to != 7;
}
