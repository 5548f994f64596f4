/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * A pipeline: blocks of data go from PE to PE, each of which adds 1. A put with signal says that a block has
 * come; a second signal, back, says that its place is free again. No barrier, and all PEs work at the same
 * time.
 * Run: orrery run -n 4 ./pipeline
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>

#define WORDS 256
#define BLOCKS 50
#define PLACES 4

static long place[PLACES][WORDS];
static uint64_t arrived; /* blocks that have come */
static uint64_t freed;   /* blocks that the next PE is done with */
static int wrong[2];

int main(void) {
  shmem_init();
  const int me = shmem_my_pe();
  const int count = shmem_n_pes();
  shmem_barrier_all();
  for (uint64_t block = 0; block < BLOCKS; ++block) {
    long work[WORDS];
    if (me == 0) {
      for (int i = 0; i < WORDS; ++i) work[i] = (long)block * 1000 + i;
    } else {
      shmem_signal_wait_until(&arrived, SHMEM_CMP_GT, block);
      for (int i = 0; i < WORDS; ++i) work[i] = place[block % PLACES][i] + 1;
      shmem_uint64_atomic_inc(&freed, me - 1);
    }
    if (me < count - 1) {
      if (block >= PLACES) shmem_uint64_wait_until(&freed, SHMEM_CMP_GT, block - PLACES);
      shmem_long_put_signal(place[block % PLACES], work, WORDS, &arrived, 1, SHMEM_SIGNAL_ADD, me + 1);
    } else {
      for (int i = 0; i < WORDS; ++i)
        if (work[i] != (long)block * 1000 + i + me) wrong[0] = 1;
    }
  }
  shmem_int_max_reduce(SHMEM_TEAM_WORLD, &wrong[1], &wrong[0], 1);
  if (me == 0) printf("pipeline: %s\n", wrong[1] == 0 ? "right" : "WRONG");
  shmem_finalize();
  return wrong[1];
}
