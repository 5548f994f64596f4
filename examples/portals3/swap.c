/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * PtlGetPut brings what lies in the target's memory and puts other bytes there, in one step for all who swap.
 * Rank 0 has a lock: a word that is 1 while it is free. Each process swaps 0 in until it gets the 1; adds to
 * rank 0's sum; and puts the 1 back. A descriptor with a threshold of one takes one message and goes: with it
 * rank 0 hears of each process once. An entry of the access table lets only the processes of this user in.
 * Run: orrery run -n 4 ./swap
 */
#include "start.h"

enum { kLock = 1, kSum = 2, kDone = 3, kRounds = 20, kOurAccess = 1 };

static void offer(struct world* w, ptl_match_bits_t bits, void* word, int threshold, unsigned int options,
                  ptl_handle_eq_t queue) {
  ptl_handle_me_t me;
  ptl_handle_md_t md;
  ptl_md_t what = memory(w, word, sizeof(uint64_t), options | PTL_MD_MANAGE_REMOTE);
  what.threshold = threshold;
  what.eq_handle = queue;
  MUST(PtlMEAttach(w->ni, kPortal, kAnyone, bits, 0, PTL_UNLINK, PTL_INS_AFTER, &me));
  MUST(PtlMDAttach(me, what, PTL_UNLINK, &md));
}

int main(void) {
  struct world w = start();
  const ptl_process_id_t home = process(&w, 0);
  uint64_t lock = 1, sum = 0, done = 0, got = 0, zero = 0, one = 1;
  ptl_uid_t user;
  ptl_handle_eq_t finished;
  ptl_event_t event;
  ptl_handle_md_t get_one, put_zero, put_one, word;
  MUST(PtlEQAlloc(w.ni, 1024, PTL_EQ_HANDLER_NONE, &finished));
  MUST(PtlGetUid(w.ni, &user));
  MUST(PtlACEntry(w.ni, kOurAccess, kAnyone, user, PTL_JID_ANY, kPortal));
  if (w.rank == 0) {
    offer(&w, kLock, &lock, PTL_MD_THRESH_INF, PTL_MD_OP_PUT | PTL_MD_OP_GET, PTL_EQ_NONE);
    offer(&w, kSum, &sum, PTL_MD_THRESH_INF, PTL_MD_OP_PUT | PTL_MD_OP_GET, PTL_EQ_NONE);
    for (int i = 0; i < w.size; ++i) offer(&w, kDone, &done, 1, PTL_MD_OP_PUT, finished);
  }
  cnos_barrier();
  MUST(PtlMDBind(w.ni, memory(&w, &got, sizeof got, 0), PTL_RETAIN, &get_one));
  MUST(PtlMDBind(w.ni, memory(&w, &zero, sizeof zero, PTL_MD_EVENT_END_DISABLE), PTL_RETAIN, &put_zero));
  MUST(PtlMDBind(w.ni, memory(&w, &one, sizeof one, 0), PTL_RETAIN, &put_one));
  MUST(PtlMDBind(w.ni, memory(&w, &got, sizeof got, 0), PTL_RETAIN, &word));
  for (int round = 0; round < kRounds; ++round) {
    do {
      MUST(PtlGetPut(get_one, put_zero, home, kPortal, kOurAccess, kLock, 0, 0));
      await(&w, PTL_EVENT_REPLY_END);
    } while (got != 1);
    MUST(PtlGet(word, home, kPortal, kOurAccess, kSum, 0));
    await(&w, PTL_EVENT_REPLY_END);
    got += (uint64_t)w.rank + 1;
    MUST(PtlPut(word, PTL_ACK_REQ, home, kPortal, kOurAccess, kSum, 0, 0));
    await(&w, PTL_EVENT_ACK);
    MUST(PtlPut(put_one, PTL_ACK_REQ, home, kPortal, kOurAccess, kLock, 0, 0));
    await(&w, PTL_EVENT_ACK);
  }
  int wrong = 0;
  MUST(PtlPut(put_one, PTL_NO_ACK_REQ, home, kPortal, kOurAccess, kDone, 0, 0));
  if (w.rank == 0) {
    for (int gone = 0; gone < w.size; gone += event.type == PTL_EVENT_UNLINK)
      MUST(PtlEQWait(finished, &event));
    wrong = sum != (uint64_t)kRounds * (uint64_t)(w.size * (w.size + 1) / 2);
  }
  return finish(&w, "swap", wrong);
}
