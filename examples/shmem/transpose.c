/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * A square matrix, some rows of it on each PE, is transposed: a row becomes a column. A PE puts the part of
 * a row that belongs to another PE there in one strided call: consecutive here, one element a row there.
 * Run: orrery run -n 4 ./transpose
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 16 /* of each PE */

int main(void) {
  shmem_init();
  const int me = shmem_my_pe();
  const int count = shmem_n_pes();
  const long size = (long)ROWS * count;
  long* from = malloc(sizeof(long) * (size_t)(ROWS * size)); /* a source need not be symmetric */
  long* to = shmem_malloc(sizeof(long) * (size_t)(ROWS * size));
  if (from == NULL || to == NULL) shmem_global_exit(1);
  for (long row = 0; row < ROWS; ++row)
    for (long column = 0; column < size; ++column)
      from[row * size + column] = (me * ROWS + row) * size + column;

  for (int pe = 0; pe < count; ++pe)
    for (long row = 0; row < ROWS; ++row)
      shmem_long_iput(&to[me * ROWS + row], &from[row * size + (long)pe * ROWS], size, 1, ROWS, pe);
  shmem_barrier_all();

  static int wrong[2];
  for (long row = 0; row < ROWS; ++row)
    for (long column = 0; column < size; ++column)
      if (to[row * size + column] != column * size + me * ROWS + row) wrong[0] = 1;
  shmem_int_max_reduce(SHMEM_TEAM_WORLD, &wrong[1], &wrong[0], 1);
  if (me == 0) printf("transpose: %s\n", wrong[1] == 0 ? "right" : "WRONG");
  shmem_free(to);
  free(from);
  shmem_finalize();
  return wrong[1];
}
