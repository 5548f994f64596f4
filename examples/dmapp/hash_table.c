/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * A hash table that lies in the memory of all PEs. A PE inserts a key by an atomic compare-and-swap on a
 * slot, which the key's hash chooses; a slot that another key has taken leads on to the next one. No PE
 * serves the table: each works on the memory of all, while their programs do their own part.
 * Run: orrery run -n 4 ./hash_table
 */
#include "start.h"

#define SLOTS 4096 /* of one PE */
#define KEYS 1500  /* that one PE inserts */

struct slot {
  int64_t key; /* 0: free */
  int64_t count;
};

static uint64_t hash_of(uint64_t key) {
  key *= 0x9e3779b97f4a7c15u;
  return key ^ (key >> 29);
}

static dmapp_jobinfo_t job;
static struct slot* table;

/* The slot of the key: found, or taken now. */
static struct slot* find(int64_t key, dmapp_pe_t* pe) {
  const uint64_t all = (uint64_t)SLOTS * (uint64_t)job.npes;
  for (uint64_t i = hash_of((uint64_t)key) % all;; i = (i + 1) % all) {
    struct slot* slot = table + i % SLOTS;
    int64_t before;
    *pe = (dmapp_pe_t)(i / SLOTS);
    MUST(dmapp_acswap_qw(&before, &slot->key, &job.sheap_seg, *pe, 0, key));
    if (before == 0 || before == key) return slot;
  }
}

int main(void) {
  job = start();
  table = (struct slot*)symmetric(SLOTS * sizeof *table);

  /* Every PE counts the same keys and some of its own. */
  for (int64_t i = 1; i <= KEYS; i++) {
    const int64_t key = i % 3 == 0 ? i : i + KEYS * (job.pe + 1);
    dmapp_pe_t pe;
    struct slot* slot = find(key, &pe);
    MUST(dmapp_aadd_qw_nbi(&slot->count, &job.sheap_seg, pe, 1));
  }
  MUST(dmapp_gsync_wait());
  PMI_Barrier();

  int wrong = 0;
  for (int64_t i = 1; i <= KEYS; i++) {
    dmapp_pe_t pe;
    const int64_t key = i % 3 == 0 ? i : i + KEYS * (job.pe + 1);
    struct slot* slot = find(key, &pe);
    int64_t count;
    MUST(dmapp_get(&count, &slot->count, &job.sheap_seg, pe, 1, DMAPP_QW));
    wrong += count != (i % 3 == 0 ? job.npes : 1);
  }
  return finish(&job, "hash_table", wrong);
}
