/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Heat in a rod that is cut into pieces, one for each PE. Before every step a PE puts the two ends of its
 * piece into the cells beside its neighbours' pieces (the halo). Two rods take turns, so that one barrier a
 * step is enough.
 * Run: orrery run -n 4 ./halo
 */
#include <math.h>
#include <shmem.h>
#include <stdio.h>

#define CELLS 64
#define STEPS 200

static double rod[2][CELLS + 2]; /* [0] and [CELLS + 1] are the halo */
static double total[2];

int main(void) {
  shmem_init();
  const int me = shmem_my_pe();
  const int count = shmem_n_pes();
  if (me == 0) rod[0][1] = 1000; /* hot at one end */
  shmem_barrier_all();
  for (int step = 0; step < STEPS; ++step) {
    double* now = rod[step % 2];
    double* next = rod[(step + 1) % 2];
    if (me > 0) shmem_double_p(&now[CELLS + 1], now[1], me - 1);
    if (me < count - 1) shmem_double_p(&now[0], now[CELLS], me + 1);
    shmem_barrier_all();
    if (me == 0) now[0] = now[1]; /* no heat leaves the ends of the rod */
    if (me == count - 1) now[CELLS + 1] = now[CELLS];
    for (int i = 1; i <= CELLS; ++i) next[i] = now[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
  }
  for (int i = 1; i <= CELLS; ++i) total[0] += rod[STEPS % 2][i];
  shmem_double_sum_reduce(SHMEM_TEAM_WORLD, &total[1], &total[0], 1);
  const int right = fabs(total[1] - 1000) < 1e-6;
  if (me == 0) printf("heat %.6f\nhalo: %s\n", total[1], right ? "right" : "WRONG");
  shmem_finalize();
  return !right;
}
