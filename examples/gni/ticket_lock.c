/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * A lock of two words in the memory of PE 0, which does nothing for it: a PE that wants it draws a ticket
 * with a fetching add and waits until the other word says that it is its turn. Fair: first come,
 * first served. Run: orrery run -n 4 ./ticket_lock
 */
#include "start.h"

#include <sched.h>
#include <stddef.h>

#define ROUNDS 50

static struct {
  uint64_t next_ticket;
  uint64_t now_serving;
  uint64_t balance; /* what the lock guards: changed by a get and a put, which are not atomic together */
} shared;

struct lock {
  struct pe* me;
  struct place home;
  gni_ep_handle_t endpoint;
  gni_cq_handle_t done;
  gni_mem_handle_t result_handle;
  uint64_t result;
};

static void carry_out(struct lock* lock, gni_post_descriptor_t* request) {
  request->cq_mode = GNI_CQMODE_GLOBAL_EVENT;
  request->length = sizeof(uint64_t);
  request->local_addr = (uint64_t)&lock->result;
  request->local_mem_hndl = lock->result_handle;
  request->remote_mem_hndl = lock->home.handle;
  MUST(GNI_PostFma(lock->endpoint, request));
  gni_post_descriptor_t* finished;
  const gni_cq_entry_t event = wait_for_event(lock->done);
  MUST(GNI_GetCompleted(lock->done, event, &finished));
}

static uint64_t fetch_add(struct lock* lock, size_t offset, uint64_t value) {
  gni_post_descriptor_t amo;
  memset(&amo, 0, sizeof amo);
  amo.type = GNI_POST_AMO;
  amo.amo_cmd = GNI_FMA_ATOMIC_FADD;
  amo.first_operand = value;
  amo.remote_addr = lock->home.address + offset;
  carry_out(lock, &amo);
  return lock->result;
}

static void transfer(struct lock* lock, gni_post_type_t type, size_t offset) {
  gni_post_descriptor_t request;
  memset(&request, 0, sizeof request);
  request.type = type;
  request.remote_addr = lock->home.address + offset;
  carry_out(lock, &request);
}

static void take(struct lock* lock) {
  const uint64_t ticket = fetch_add(lock, offsetof(__typeof__(shared), next_ticket), 1);
  /* Adding nothing reads a word atomically. */
  while (fetch_add(lock, offsetof(__typeof__(shared), now_serving), 0) != ticket) sched_yield();
}

static void give_back(struct lock* lock) { fetch_add(lock, offsetof(__typeof__(shared), now_serving), 1); }

int main(void) {
  struct pe me = start();
  gni_mem_handle_t handle = register_memory(&me, &shared, sizeof shared, NULL);
  struct lock lock;
  memset(&lock, 0, sizeof lock);
  lock.me = &me;
  lock.home = exchange(&me, &shared, handle, 0);
  lock.done = make_queue(&me, 4);
  lock.endpoint = connect_to(&me, &lock.home, lock.done);
  lock.result_handle = register_memory(&me, &lock.result, sizeof lock.result, NULL);

  for (int round = 0; round < ROUNDS; round++) {
    take(&lock);
    transfer(&lock, GNI_POST_FMA_GET, offsetof(__typeof__(shared), balance));
    lock.result += 1;
    transfer(&lock, GNI_POST_FMA_PUT, offsetof(__typeof__(shared), balance));
    give_back(&lock);
  }
  PMI_Barrier();
  int failed = 0;
  if (me.rank == 0) {
    const uint64_t expected = (uint64_t)ROUNDS * (uint64_t)me.size;
    failed = shared.balance != expected;
    printf("balance %lu, expected %lu\n", (unsigned long)shared.balance, (unsigned long)expected);
  }
  finish(&me);
  return failed;
}
