/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * What every uGNI program begins with. A PE
 *   1. joins its job (PMI), which tells it its rank and names the job's protection domain;
 *   2. creates a communication domain (CDM) in it and attaches it to a NIC;
 *   3. makes completion queues, endpoints and registrations on that NIC;
 *   4. tells its peers where its memory is: the address, and the handle of its registration, 24 bytes in all.
 */
#pragma once

#include <gni_pub.h>
#include <pmi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call that fails ends the job: its peers would wait for ever. */
#define MUST(call)                                          \
  do {                                                      \
    gni_return_t rc_ = (call);                              \
    if (rc_ != GNI_RC_SUCCESS) {                            \
      fprintf(stderr, "%s: %s\n", #call, gni_err_str[rc_]); \
      PMI_Abort(1, #call);                                  \
    }                                                       \
  } while (0)

/* How to find a PE's memory. It may travel as bytes: a handle means the same to every PE. */
struct place {
  int rank;
  uint32_t nic_address;
  uint64_t address;
  gni_mem_handle_t handle;
};

struct pe {
  int rank, size;
  gni_cdm_handle_t cdm;
  gni_nic_handle_t nic;
  uint32_t nic_address;
};

static inline struct pe start(void) {
  struct pe me;
  int spawned;
  if (PMI_Init(&spawned) != PMI_SUCCESS) exit(1);
  PMI_Get_rank(&me.rank);
  PMI_Get_size(&me.size);
  /* Lists with colons, one item for each domain of the job; atoi() reads the first. */
  const uint8_t ptag = (uint8_t)atoi(getenv("PMI_GNI_PTAG"));
  const uint32_t cookie = (uint32_t)atoi(getenv("PMI_GNI_COOKIE"));
  /* The instance, here the rank, is what events at our peers will carry. */
  MUST(GNI_CdmCreate((uint32_t)me.rank, ptag, cookie, GNI_CDM_MODE_ERR_NO_KILL, &me.cdm));
  MUST(GNI_CdmAttach(me.cdm, 0, &me.nic_address, &me.nic));
  return me;
}

static inline gni_cq_handle_t make_queue(const struct pe* me, uint32_t entries) {
  gni_cq_handle_t queue;
  MUST(GNI_CqCreate(me->nic, entries, 0, GNI_CQ_NOBLOCK, NULL, NULL, &queue));
  return queue;
}

/* Registers memory; `queue`, or NULL, hears of what peers do to it. */
static inline gni_mem_handle_t register_memory(const struct pe* me, void* memory, uint64_t bytes,
                                               gni_cq_handle_t queue) {
  gni_mem_handle_t handle;
  MUST(GNI_MemRegister(me->nic, (uint64_t)memory, bytes, queue, GNI_MEM_READWRITE, (uint32_t)-1, &handle));
  return handle;
}

/* Tells every PE's place to all PEs, and returns the one of `rank`. Also a barrier. */
static inline struct place exchange(const struct pe* me, void* memory, gni_mem_handle_t handle, int rank) {
  struct place mine;
  memset(&mine, 0, sizeof mine);
  mine.rank = me->rank;
  mine.nic_address = me->nic_address;
  mine.address = (uint64_t)memory;
  mine.handle = handle;
  struct place* all = (struct place*)calloc((size_t)me->size, sizeof *all);
  PMI_Allgather(&mine, all, sizeof mine);
  struct place found = mine;
  for (int i = 0; i < me->size; i++)
    if (all[i].rank == rank) found = all[i];
  free(all);
  return found;
}

/* An endpoint to a peer; `queue` hears when what we post through it is done. */
static inline gni_ep_handle_t connect_to(const struct pe* me, const struct place* peer,
                                         gni_cq_handle_t queue) {
  gni_ep_handle_t endpoint;
  MUST(GNI_EpCreate(me->nic, queue, &endpoint));
  MUST(GNI_EpBind(endpoint, peer->nic_address, (uint32_t)peer->rank));
  return endpoint;
}

/* Waits for an event. */
static inline gni_cq_entry_t wait_for_event(gni_cq_handle_t queue) {
  gni_cq_entry_t event;
  gni_return_t rc;
  while ((rc = GNI_CqGetEvent(queue, &event)) == GNI_RC_NOT_DONE) {
  }
  MUST(rc);
  return event;
}

/* The domain takes everything that was made on it along. */
static inline void finish(struct pe* me) {
  PMI_Barrier();
  MUST(GNI_CdmDestroy(me->cdm));
  PMI_Finalize();
}
