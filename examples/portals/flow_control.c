/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Flow control: rank 0 has room for a few messages, and all others send it more. The message that finds no
 * room stops the portal; rank 0 is told once, each sender by a failed acknowledgement. All wait until nothing
 * is under way, rank 0 makes room and lets the portal go on, and the senders send again what was refused.
 * Run: orrery run -n 7 ./flow_control
 */
#include "start.h"

enum { kMessages = 8, kRoom = 3, kControlled = 6, kBits = 1 };

/* Sends so many messages; returns how many were refused. */
static int send_all(const struct world* w, ptl_handle_md_t md, int messages) {
  int refused = 0;
  for (int i = 0; i < messages; ++i)
    MUST(PtlPut(md, 0, sizeof(int), PTL_ACK_REQ, w->process[0], kControlled, kBits, 0, NULL, 0));
  for (int i = 0; i < messages; ++i) {
    ptl_event_t event;
    do MUST(PtlEQWait(w->events, &event));
    while (event.type != PTL_EVENT_ACK);
    refused += event.ni_fail_type == PTL_NI_PT_DISABLED;
  }
  return refused;
}

int main(void) {
  struct world w = start();
  const int expected = (w.size - 1) * kMessages;
  int value = w.rank, room = 0, wrong = 0, refused = 0, got = 0, stopped = 0;
  ptl_handle_eq_t arrivals;
  ptl_handle_me_t me;
  ptl_handle_md_t md;
  ptl_pt_index_t portal;
  ptl_event_t event;
  ptl_me_t once = entry(&room, sizeof room, kBits, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);

  if (w.rank == 0) {
    MUST(PtlEQAlloc(w.ni, (ptl_size_t)expected + 16, &arrivals));
    MUST(PtlPTAlloc(w.ni, PTL_PT_FLOWCTRL, arrivals, kControlled, &portal));
    for (int i = 0; i < kRoom; ++i) MUST(PtlMEAppend(w.ni, kControlled, &once, PTL_PRIORITY_LIST, NULL, &me));
  } else {
    const ptl_md_t memory = {&value, sizeof value, 0, w.events, PTL_CT_NONE};
    MUST(PtlMDBind(w.ni, &memory, &md));
  }
  PMI_Barrier();
  if (w.rank != 0) refused = send_all(&w, md, kMessages);
  PMI_Barrier(); /* nothing is under way any more: each message was answered */

  if (w.rank == 0 && w.size > 1) {
    int code;
    while ((code = PtlEQGet(arrivals, &event)) == PTL_OK) {
      got += event.type == PTL_EVENT_PUT;
      stopped += event.type == PTL_EVENT_PT_DISABLED;
    }
    wrong += code != PTL_EQ_EMPTY || got != kRoom || stopped != 1;
    /* Room for all that were refused, then the portal takes messages again. */
    for (int i = got; i < expected; ++i)
      MUST(PtlMEAppend(w.ni, kControlled, &once, PTL_PRIORITY_LIST, NULL, &me));
    MUST(PtlPTEnable(w.ni, kControlled));
  }
  PMI_Barrier();
  if (w.rank != 0) wrong += send_all(&w, md, refused) != 0;
  PMI_Barrier();
  if (w.rank == 0 && w.size > 1) {
    for (; got < expected; ++got) MUST(PtlEQWait(arrivals, &event));
    wrong += PtlEQGet(arrivals, &event) != PTL_EQ_EMPTY;
  }
  return finish(&w, "flow_control", wrong);
}
