/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * The block transfer engine: a put of 32 MiB goes on while its PE computes.
 * Run: orrery run -n 2 ./overlap
 */
#include "start.h"

enum { kBytes = 32 << 20 };

int main(void) {
  struct pe me = start();
  const int next = (me.rank + 1) % me.size;
  const int before = (me.rank + me.size - 1) % me.size;

  unsigned char* from = malloc(kBytes);
  unsigned char* to = calloc(kBytes, 1);
  memset(from, me.rank + 1, kBytes);

  gni_cq_handle_t done = make_queue(&me, 16);
  gni_cq_handle_t arrived = make_queue(&me, 16);
  const struct place peer = exchange(&me, to, register_memory(&me, to, kBytes, arrived), next);
  gni_ep_handle_t endpoint = connect_to(&me, &peer, done);

  /* The engine reads the source itself, so that has to be registered and left alone until the event. */
  gni_post_descriptor_t put;
  memset(&put, 0, sizeof put);
  put.type = GNI_POST_RDMA_PUT;
  put.cq_mode = GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT;
  put.local_addr = (uint64_t)from;
  put.local_mem_hndl = register_memory(&me, from, kBytes, NULL);
  put.remote_addr = peer.address;
  put.remote_mem_hndl = peer.handle;
  put.length = kBytes;
  MUST(GNI_PostRdma(endpoint, &put));

  /* The call is back, the transfer has only begun: compute, and look at the queue now and then. */
  gni_cq_entry_t event;
  gni_return_t rc;
  double sum = 0;
  long steps = 0;
  while ((rc = GNI_CqGetEvent(done, &event)) == GNI_RC_NOT_DONE) {
    for (int i = 1; i <= 1000; i++) sum += 1.0 / i;
    steps++;
  }
  MUST(rc);
  gni_post_descriptor_t* finished;
  MUST(GNI_GetCompleted(done, event, &finished));

  /* And the one for us. */
  wait_for_event(arrived);
  long wrong = 0;
  for (long i = 0; i < kBytes; i++) wrong += to[i] != (unsigned char)(before + 1);
  printf("PE %d computed %ld steps (%.0f) during its put; %ld bytes of PE %d's are wrong\n", me.rank, steps,
         sum, wrong, before);
  finish(&me);
  free(from);
  free(to);
  return wrong != 0;
}
