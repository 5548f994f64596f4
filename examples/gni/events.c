/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Events: which PE gets which event of a put, and how a PE is told something without any data.
 * Run: orrery run -n 2 ./events
 */
#include "start.h"

int main(void) {
  struct pe me = start();
  const int next = (me.rank + 1) % me.size;
  const int before = (me.rank + me.size - 1) % me.size;

  /* Two queues, because a queue is for our own requests or for what peers do to our memory, not for both. */
  gni_cq_handle_t done = make_queue(&me, 16);
  gni_cq_handle_t arrived = make_queue(&me, 16);

  uint64_t inbox = 0;
  const struct place peer = exchange(&me, &inbox, register_memory(&me, &inbox, sizeof inbox, arrived), next);
  gni_ep_handle_t endpoint = connect_to(&me, &peer, done);

  /* What events carry is the endpoint's to say: 24 bits on our side, 32 on the other. Unless it is said they
   * carry the id that we bound to, and the instance of our domain. */
  MUST(GNI_EpSetEventData(endpoint, 7, 1000 + (uint32_t)me.rank));

  uint64_t number = 4711;
  gni_post_descriptor_t put;
  memset(&put, 0, sizeof put);
  put.type = GNI_POST_FMA_PUT;
  put.cq_mode = GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT; /* one event here, one there */
  put.local_addr = (uint64_t)&number;
  put.remote_addr = peer.address;
  put.remote_mem_hndl = peer.handle;
  put.length = sizeof number;
  MUST(GNI_PostFma(endpoint, &put));

  gni_cq_entry_t event = wait_for_event(done);
  gni_post_descriptor_t* finished;
  MUST(GNI_GetCompleted(done, event, &finished));
  const int mine = (int)GNI_CQ_GET_INST_ID(event);

  /* The target's event comes behind the data: `inbox` is filled when the event is here. */
  event = wait_for_event(arrived);
  const int theirs = (int)GNI_CQ_GET_REM_INST_ID(event);
  printf("PE %d: my put's event says %d; a put of PE %d brought %d and %d\n", me.rank, mine, before,
         (int)inbox, theirs);

  /* An event by itself: 48 bits of our own into the queue behind the peer's registration. */
  gni_post_descriptor_t tell;
  memset(&tell, 0, sizeof tell);
  tell.type = GNI_POST_CQWRITE;
  tell.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
  tell.remote_mem_hndl = peer.handle;
  tell.cqwrite_value = 0xabcdef000000 + (uint64_t)me.rank;
  MUST(GNI_PostCqWrite(endpoint, &tell));
  event = wait_for_event(done);
  MUST(GNI_GetCompleted(done, event, &finished));
  event = wait_for_event(arrived);
  const uint64_t told = GNI_CQ_GET_DATA(event);
  printf("PE %d was told 0x%llx\n", me.rank, (unsigned long long)told);

  const int good =
      mine == 7 && theirs == 1000 + before && inbox == 4711 && told == 0xabcdef000000 + (uint64_t)before;
  finish(&me);
  return !good;
}
