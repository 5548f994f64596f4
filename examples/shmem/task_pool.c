/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * A pool of tasks: a counter on PE 0 is the number of the next one. Whichever PE has time takes it by fetch
 * and increment, so that a slow PE does fewer of them and none is done twice.
 * Run: orrery run -n 4 ./task_pool
 */
#include <shmem.h>
#include <stdio.h>

#define TASKS 1000

static long next_task;
static long sums[2];

int main(void) {
  shmem_init();
  const int me = shmem_my_pe();
  long done = 0;
  for (;;) {
    const long task = shmem_long_atomic_fetch_inc(&next_task, 0);
    if (task >= TASKS) break;
    sums[0] += task * task; /* the work */
    ++done;
  }
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sums[1], &sums[0], 1);
  printf("PE %d did %ld tasks\n", me, done);
  const long expected = (long)(TASKS - 1) * TASKS * (2 * TASKS - 1) / 6;
  shmem_barrier_all();
  if (me == 0) printf("task_pool: %s\n", sums[1] == expected ? "right" : "WRONG");
  shmem_finalize();
  return sums[1] != expected;
}
