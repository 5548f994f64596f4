/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * A reduction in the NICs: every PE gives a number, and every PE gets the sum and the PE with the largest.
 * The NIC of PE 0 has an engine at the root of a tree whose leaves are the PEs.
 * Run: orrery run -n 4 ./allreduce
 */
#include "start.h"

/* Every PE's NIC address and engine, told to all PEs. */
struct root {
  int rank;
  uint32_t nic_address, engine;
};

int main(void) {
  struct pe me = start();
  gni_cq_handle_t done = make_queue(&me, 16);

  gni_ce_handle_t engine = NULL;
  struct root mine = {me.rank, me.nic_address, 0};
  if (me.rank == 0) {
    MUST(GNI_CeCreate(me.nic, &engine));
    MUST(GNI_CeGetId(engine, &mine.engine));
  }
  struct root* all = (struct root*)calloc((size_t)me.size, sizeof *all);
  PMI_Allgather(&mine, all, sizeof mine);

  /* The root names its children: an endpoint to each PE, with the number under which it will join. */
  struct root root = mine;
  gni_ep_handle_t* children = (gni_ep_handle_t*)calloc((size_t)me.size, sizeof *children);
  for (int i = 0; i < me.size; i++) {
    if (all[i].rank == 0) root = all[i];
    if (me.rank != 0) continue;
    MUST(GNI_EpCreate(me.nic, done, &children[i]));
    MUST(GNI_EpBind(children[i], all[i].nic_address, (uint32_t)all[i].rank));
    MUST(GNI_EpSetCeAttr(children[i], (uint32_t)-1, (uint32_t)all[i].rank, GNI_CE_CHILD_PE));
  }
  if (me.rank == 0)
    MUST(GNI_CeConfigure(engine, children, (uint32_t)me.size, NULL, NULL, GNI_CE_MODE_ROUND_NEAR));

  /* Each PE has an endpoint up to the engine, under the same number. */
  gni_ep_handle_t up;
  MUST(GNI_EpCreate(me.nic, done, &up));
  MUST(GNI_EpBind(up, root.nic_address, 0));
  MUST(GNI_EpSetCeAttr(up, root.engine, (uint32_t)me.rank, GNI_CE_CHILD_PE));
  PMI_Barrier();

  /* The result comes into registered memory. */
  gni_ce_result_t results[2];
  gni_mem_handle_t handle = register_memory(&me, results, sizeof results, NULL);
  const double number = 0.5 * (me.rank + 1);
  gni_post_descriptor_t post[2];
  memset(post, 0, sizeof post);
  for (int i = 0; i < 2; i++) {
    post[i].type = GNI_POST_CE;
    post[i].cq_mode = GNI_CQMODE_GLOBAL_EVENT; /* an event when the engine has our contribution */
    post[i].local_addr = (uint64_t)&results[i];
    post[i].local_mem_hndl = handle;
    post[i].ce_red_id = (uint64_t)(100 + i); /* two reductions at once, told apart by their numbers */
    memcpy(&post[i].first_operand, &number, sizeof number);
  }
  post[0].ce_cmd = GNI_FMA_CE_FPADD;
  post[1].ce_cmd = GNI_FMA_CE_FPMAX_LIDX;
  post[1].second_operand = (uint64_t)me.rank;
  for (int i = 0; i < 2; i++) MUST(GNI_PostFma(up, &post[i]));
  for (int i = 0; i < 2; i++) {
    gni_post_descriptor_t* finished;
    MUST(GNI_GetCompleted(done, wait_for_event(done), &finished));
  }

  gni_return_t rc;
  while ((rc = GNI_CeCheckResult(results, 2)) == GNI_RC_NOT_DONE) {
  }
  MUST(rc);
  double sum, largest;
  memcpy(&sum, &results[0].result1, sizeof sum);
  memcpy(&largest, &results[1].result1, sizeof largest);
  printf("PE %d: the sum is %.1f; the largest is %.1f, of PE %d\n", me.rank, sum, largest,
         (int)results[1].result2);
  const int failed = sum != 0.25 * me.size * (me.size + 1) || largest != 0.5 * me.size ||
                     results[1].result2 != (uint64_t)(me.size - 1);
  free(all);
  free(children);
  finish(&me);
  return failed;
}
