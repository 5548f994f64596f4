/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Transpose of a square matrix whose rows are spread over the PEs, by strided puts: row i of the source is
 * column i of the result. A PE sends each of its rows to all PEs; one call places a piece of it into one
 * column at its target, element by element, with a stride of one row.
 * Run: orrery run -n 4 ./transpose
 */
#include "start.h"

#define ROWS 32 /* of one PE */

int main(void) {
  dmapp_jobinfo_t job = start();
  const int size = ROWS * job.npes;
  double* from = (double*)malloc((size_t)ROWS * (size_t)size * sizeof *from);
  double* to = (double*)symmetric((size_t)ROWS * (size_t)size * sizeof *to);
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < size; column++)
      from[row * size + column] = (ROWS * job.pe + row) * 10000.0 + column;

  for (int row = 0; row < ROWS; row++) {
    const int column_there = ROWS * job.pe + row;
    for (int i = 0; i < job.npes; i++) {
      /* Each PE begins with another target, so that no target gets all at once. */
      const dmapp_pe_t pe = (job.pe + i) % job.npes;
      MUST(dmapp_iput_nbi(to + column_there, &job.sheap_seg, pe, from + row * size + ROWS * pe, /*tst*/ size,
                          /*sst*/ 1, ROWS, DMAPP_QW));
    }
  }
  MUST(dmapp_gsync_wait());
  PMI_Barrier();

  int wrong = 0;
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < size; column++)
      wrong += to[row * size + column] != column * 10000.0 + (ROWS * job.pe + row);
  free(from);
  return finish(&job, "transpose", wrong);
}
