/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * A put: each PE writes a line of text into the memory of the next one.
 * Run: orrery run -n 2 ./put
 */
#include "start.h"

int main(void) {
  struct pe me = start();
  const int next = (me.rank + 1) % me.size;

  /* Where the put will land has to be registered; where it comes from need not be, for the FMA unit: the
   * processor itself carries the bytes to the NIC's window, so the source may be reused on return. */
  char inbox[64] = "";
  gni_mem_handle_t handle = register_memory(&me, inbox, sizeof inbox, NULL);
  const struct place peer = exchange(&me, inbox, handle, next);

  gni_cq_handle_t done = make_queue(&me, 16);
  gni_ep_handle_t endpoint = connect_to(&me, &peer, done);

  char text[64];
  snprintf(text, sizeof text, "greetings from PE %d", me.rank);

  gni_post_descriptor_t put;
  memset(&put, 0, sizeof put);
  put.type = GNI_POST_FMA_PUT;
  put.cq_mode = GNI_CQMODE_GLOBAL_EVENT; /* an event in `done` when the target has it all */
  put.dlvr_mode = GNI_DLVMODE_PERFORMANCE;
  put.local_addr = (uint64_t)text;
  put.remote_addr = peer.address;
  put.remote_mem_hndl = peer.handle;
  put.length = sizeof text;
  MUST(GNI_PostFma(endpoint, &put));

  /* The event says that a put is done; GNI_GetCompleted says which, and frees its place in the queue. */
  const gni_cq_entry_t event = wait_for_event(done);
  gni_post_descriptor_t* finished;
  MUST(GNI_GetCompleted(done, event, &finished));
  if (finished != &put) return 1;

  /* Ours has arrived at the next PE; has the one for us? After this all have. */
  PMI_Barrier();
  printf("PE %d received: %s\n", me.rank, inbox);

  char expected[64];
  snprintf(expected, sizeof expected, "greetings from PE %d", (me.rank + me.size - 1) % me.size);
  const int failed = strcmp(inbox, expected) != 0;
  finish(&me);
  return failed;
}
