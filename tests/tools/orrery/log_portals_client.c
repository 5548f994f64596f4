/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* Calls of Portals 4 whose lines log_test.cpp expects: a put to this process itself. */
#include <portals4.h>

#define MUST(call) \
  if ((call) != PTL_OK) return __LINE__

int main(void) {
  ptl_handle_ni_t ni;
  ptl_handle_eq_t events, own_events;
  ptl_handle_md_t md_handle;
  ptl_handle_me_t me_handle;
  ptl_pt_index_t index;
  ptl_process_t id;
  ptl_event_t event;
  uint64_t from = 7, to = 0;
  MUST(PtlInit());
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni));
  MUST(PtlGetPhysId(ni, &id));
  MUST(PtlEQAlloc(ni, 10, &events));
  MUST(PtlEQAlloc(ni, 10, &own_events));
  MUST(PtlPTAlloc(ni, 0, events, PTL_PT_ANY, &index));
  const ptl_me_t me = {.start = &to,
                       .length = sizeof to,
                       .ct_handle = PTL_CT_NONE,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
                       .match_id = {.phys = {.nid = PTL_NID_ANY, .pid = PTL_PID_ANY}},
                       .match_bits = 42};
  MUST(PtlMEAppend(ni, index, &me, PTL_PRIORITY_LIST, NULL, &me_handle));
  const ptl_md_t md = {
      .start = &from, .length = sizeof from, .eq_handle = own_events, .ct_handle = PTL_CT_NONE};
  MUST(PtlMDBind(ni, &md, &md_handle));
  for (int look = 0; look < 10; look++)
    if (PtlEQGet(events, &event) != PTL_EQ_EMPTY) return __LINE__;
  MUST(PtlPut(md_handle, 0, sizeof from, PTL_NO_ACK_REQ, id, index, 42, 0, NULL, 7));
  MUST(PtlEQWait(events, &event));
  MUST(PtlEQWait(own_events, &event));
  MUST(PtlMEUnlink(me_handle));
  MUST(PtlMDRelease(md_handle));
  MUST(PtlNIFini(ni));
  PtlFini();
  return PtlEQAlloc(ni, 10, &events) != PTL_NO_INIT || to != 7;
}
