/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Atomic memory operations: PEs share out work by a counter in the memory of PE 0. Each fetching add takes
 * the next number, also when others ask at the same time. Run: orrery run -n 4 ./amo_counter
 */
#include "start.h"

#define ITEMS 1000

static struct {
  uint64_t next;     /* the number that no PE has yet */
  uint64_t taken;    /* how many items were worked on, */
  uint64_t bits[16]; /* and which: bit i of these */
} shared;

int main(void) {
  struct pe me = start();
  gni_mem_handle_t handle = register_memory(&me, &shared, sizeof shared, NULL);
  const struct place home = exchange(&me, &shared, handle, 0);
  gni_cq_handle_t done = make_queue(&me, 16);
  gni_ep_handle_t endpoint = connect_to(&me, &home, done);

  /* What a fetching command found comes here; so it has to be registered. */
  uint64_t found = 0;
  gni_mem_handle_t found_handle = register_memory(&me, &found, sizeof found, NULL);

  gni_post_descriptor_t amo;
  memset(&amo, 0, sizeof amo);
  amo.type = GNI_POST_AMO;
  amo.length = sizeof(uint64_t);
  amo.local_addr = (uint64_t)&found;
  amo.local_mem_hndl = found_handle;
  amo.remote_mem_hndl = home.handle;

  int mine = 0;
  for (;;) {
    amo.amo_cmd = GNI_FMA_ATOMIC_FADD;
    amo.first_operand = 1;
    amo.remote_addr = home.address;
    amo.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
    MUST(GNI_PostFma(endpoint, &amo));
    const gni_cq_entry_t event = wait_for_event(done);
    gni_post_descriptor_t* finished;
    MUST(GNI_GetCompleted(done, event, &finished));
    const uint64_t item = found;
    if (item >= ITEMS) break;

    /* Work on the item: here, say so. A command that does not fetch needs no place for a result, and without
     * an event no PE waits for it. */
    amo.amo_cmd = GNI_FMA_ATOMIC_OR;
    amo.cq_mode = GNI_CQMODE_SILENT;
    amo.remote_addr = home.address + sizeof(uint64_t) * (2 + item / 64);
    amo.first_operand = (uint64_t)1 << item % 64;
    MUST(GNI_PostFma(endpoint, &amo));
    mine++;
  }
  /* In order behind the silent ones: when it is done, so are they. */
  amo.amo_cmd = GNI_FMA_ATOMIC_ADD;
  amo.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
  amo.dlvr_mode = GNI_DLVMODE_IN_ORDER;
  amo.remote_addr = home.address + sizeof(uint64_t);
  amo.first_operand = (uint64_t)mine;
  MUST(GNI_PostFma(endpoint, &amo));
  const gni_cq_entry_t event = wait_for_event(done);
  gni_post_descriptor_t* finished;
  MUST(GNI_GetCompleted(done, event, &finished));
  printf("PE %d worked on %d items\n", me.rank, mine);
  PMI_Barrier();

  int failed = 0;
  if (me.rank == 0) {
    for (int item = 0; item < ITEMS; item++) failed |= (shared.bits[item / 64] >> item % 64 & 1) == 0;
    failed |= shared.taken != ITEMS;
    printf("%d items, %s\n", (int)shared.taken, failed ? "not each of them once" : "each of them once");
  }
  finish(&me);
  return failed;
}
