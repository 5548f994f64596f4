/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * A hash table over all PEs. A slot is taken by compare and swap: the PE that finds 0 there has written its
 * key, all others see it and go on to the next slot. The PE that has the slot need not answer.
 * Run: orrery run -n 4 ./hash_table
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>

#define SLOTS 512 /* of each PE */
#define KEYS 200  /* that each PE enters; every second one is entered by its neighbour too */

static uint64_t keys[SLOTS];
static uint64_t counts[SLOTS];
static long sums[2];

static void enter(uint64_t key, int pes) {
  const uint64_t slots = (uint64_t)SLOTS * (uint64_t)pes;
  for (uint64_t at = key * 0x9e3779b97f4a7c15u % slots;; at = (at + 1) % slots) {
    const int pe = (int)(at / SLOTS);
    const uint64_t there = shmem_uint64_atomic_compare_swap(&keys[at % SLOTS], 0, key, pe);
    if (there != 0 && there != key) continue;
    shmem_uint64_atomic_inc(&counts[at % SLOTS], pe);
    return;
  }
}

int main(void) {
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  for (int i = 0; i < KEYS; ++i) {
    const int owner = i % 2 == 0 ? me : (me + 1) % pes;
    enter((uint64_t)owner * KEYS + (uint64_t)i + 1, pes);
    enter((uint64_t)me * KEYS + (uint64_t)i + 1, pes);
  }
  shmem_barrier_all();
  for (int i = 0; i < SLOTS; ++i) sums[0] += (long)counts[i];
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sums[1], &sums[0], 1);
  const int right = sums[1] == 2L * KEYS * pes;
  if (me == 0) printf("%ld entries\nhash_table: %s\n", sums[1], right ? "right" : "WRONG");
  shmem_finalize();
  return !right;
}
