/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * A get: each PE reads a table out of the memory of the next one, which does nothing for it.
 * Run: orrery run -n 2 ./get
 */
#include "start.h"

enum { kNumbers = 1000 };

int main(void) {
  struct pe me = start();
  const int next = (me.rank + 1) % me.size;

  uint32_t table[kNumbers];
  for (int i = 0; i < kNumbers; i++) table[i] = (uint32_t)(me.rank * 1000000 + i);
  const struct place peer = exchange(&me, table, register_memory(&me, table, sizeof table, NULL), next);

  gni_cq_handle_t done = make_queue(&me, 16);
  gni_ep_handle_t endpoint = connect_to(&me, &peer, done);

  /* A get writes to our memory, so that has to be registered, too. */
  uint32_t copy[kNumbers];
  memset(copy, 0, sizeof copy);

  gni_post_descriptor_t get;
  memset(&get, 0, sizeof get);
  get.type = GNI_POST_FMA_GET;
  get.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
  get.local_addr = (uint64_t)copy;
  get.local_mem_hndl = register_memory(&me, copy, sizeof copy, NULL);
  get.remote_addr = peer.address; /* a get's remote address and length are multiples of 4: the NIC's rule */
  get.remote_mem_hndl = peer.handle;
  get.length = sizeof copy;
  MUST(GNI_PostFma(endpoint, &get));

  /* Nothing may be said of `copy` before the event. */
  const gni_cq_entry_t event = wait_for_event(done);
  gni_post_descriptor_t* finished;
  MUST(GNI_GetCompleted(done, event, &finished));

  int wrong = 0;
  for (int i = 0; i < kNumbers; i++) wrong += copy[i] != (uint32_t)(next * 1000000 + i);
  printf("PE %d read %d numbers of PE %d, %d of them wrong\n", me.rank, kNumbers, next, wrong);
  finish(&me);
  return wrong != 0;
}
