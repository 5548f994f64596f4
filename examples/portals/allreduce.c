/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * A sum over all processes, by triggered operations alone: each process tells its NIC to add its sum to its
 * parent's word when its own number and its children's are there, and to pass the total on when that comes.
 * Then all programs but the root's sleep; the NICs go through the whole tree meanwhile.
 * Run: orrery run -n 7 ./allreduce
 */
#include "start.h"

#include <time.h>

enum { kUp = 1, kDown = 2, kRounds = 3 };

int main(void) {
  struct world w = start();
  uint64_t sum[kRounds] = {0}, total[kRounds] = {0};
  ptl_handle_ct_t up[kRounds], down[kRounds];
  ptl_handle_md_t from_sum, from_total;
  ptl_handle_me_t me;
  int wrong = 0, children = 0;

  /* A word and a counter for the children's numbers, and one of each for the total, for every round. */
  for (int r = 0; r < kRounds; ++r) {
    MUST(PtlCTAlloc(w.ni, &up[r]));
    MUST(PtlCTAlloc(w.ni, &down[r]));
    ptl_me_t numbers = entry(&sum[r], sizeof sum[r], (ptl_match_bits_t)(10 * r + kUp),
                             PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM);
    numbers.ct_handle = up[r];
    MUST(PtlMEAppend(w.ni, kPortal, &numbers, PTL_PRIORITY_LIST, NULL, &me));
    ptl_me_t result = entry(&total[r], sizeof total[r], (ptl_match_bits_t)(10 * r + kDown),
                            PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM);
    result.ct_handle = down[r];
    MUST(PtlMEAppend(w.ni, kPortal, &result, PTL_PRIORITY_LIST, NULL, &me));
    sum[r] = (uint64_t)((r + 1) * (w.rank + 1)); /* this process's number */
  }
  const ptl_md_t sums = {sum, sizeof sum, 0, PTL_EQ_NONE, PTL_CT_NONE};
  const ptl_md_t totals = {total, sizeof total, 0, PTL_EQ_NONE, PTL_CT_NONE};
  MUST(PtlMDBind(w.ni, &sums, &from_sum));
  MUST(PtlMDBind(w.ni, &totals, &from_total));
  PMI_Barrier(); /* every entry is there */

  for (int r = 0; r < kRounds; ++r) {
    const ptl_size_t at = (ptl_size_t)r * sizeof(uint64_t);
    const ptl_match_bits_t bits = (ptl_match_bits_t)(10 * r);
    children = 0;
    for (int child = 2 * w.rank + 1; child <= 2 * w.rank + 2 && child < w.size; ++child) ++children;
    /* The root's sum is the total: it goes down from there. Others pass on what came from above. */
    for (int child = 2 * w.rank + 1; child < 2 * w.rank + 1 + children; ++child)
      MUST(PtlTriggeredPut(w.rank == 0 ? from_sum : from_total, at, sizeof(uint64_t), PTL_NO_ACK_REQ,
                           w.process[child], kPortal, bits + kDown, 0, NULL, 0, w.rank == 0 ? up[r] : down[r],
                           w.rank == 0 ? (ptl_size_t)children : (ptl_size_t)1));
    /* A leaf has no children: a threshold of 0 is reached, and its number leaves at once. */
    if (w.rank != 0)
      MUST(PtlTriggeredAtomic(from_sum, at, sizeof(uint64_t), PTL_NO_ACK_REQ, w.process[(w.rank - 1) / 2],
                              kPortal, bits + kUp, 0, NULL, 0, PTL_SUM, PTL_UINT64_T, up[r],
                              (ptl_size_t)children));
  }

  if (w.rank != 0) {
    const struct timespec a_while = {0, 200000000};
    nanosleep(&a_while, NULL); /* away; the NIC works */
  }
  for (int r = 0; r < kRounds; ++r) {
    ptl_ct_event_t count;
    if (w.rank != 0) {
      MUST(PtlCTWait(down[r], 1, &count));
    } else {
      if (children > 0) MUST(PtlCTWait(up[r], (ptl_size_t)children, &count));
      total[r] = sum[r];
    }
    wrong |= total[r] != (uint64_t)((r + 1) * w.size * (w.size + 1) / 2);
  }
  return finish(&w, "allreduce", wrong);
}
