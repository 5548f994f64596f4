/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * A ring: every PE puts its number into a variable of the next one. `from` is static, so every PE has it at
 * the same place and can name the others' by its own. The barrier completes the puts of all PEs before any
 * of them looks.
 * Run: orrery run -n 4 ./hello
 */
#include <shmem.h>
#include <stdio.h>

static int from = -1;

int main(void) {
  shmem_init();
  int me = shmem_my_pe();
  int count = shmem_n_pes();
  shmem_int_p(&from, me, (me + 1) % count);
  shmem_barrier_all();
  int right = from == (me + count - 1) % count;
  printf("PE %d of %d heard from %d\n", me, count, from);

  /* Does every PE agree? All contribute, all get the result. */
  static int all_right;
  static int mine;
  mine = right;
  shmem_int_min_reduce(SHMEM_TEAM_WORLD, &all_right, &mine, 1);
  if (me == 0) printf("hello: %s\n", all_right ? "right" : "WRONG");
  shmem_finalize();
  return !right;
}
