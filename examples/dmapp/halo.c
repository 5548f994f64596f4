/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Halo exchange: a rod is cut into one piece a PE, and heat flows along it. In each step a PE puts the
 * cells at its two ends into its neighbours' halo, completes both puts at once (gsync), and tells the
 * neighbours by a flag. Two sets of halo cells are used in turns: a neighbour that is a step ahead does
 * not overwrite what is still needed.
 * Run: orrery run -n 4 ./halo
 */
#include "start.h"

#define CELLS 256
#define STEPS 200

struct piece {
  double halo[2][2];         /* [step % 2][left, right] */
  volatile uint64_t step[2]; /* how many steps the left and the right neighbour have put */
};

static double next_value(double left, double here, double right) {
  return here + 0.25 * (left - 2 * here + right);
}

/* The same on one PE, for comparison. */
static double* alone(int cells) {
  double* now = (double*)calloc((size_t)cells, sizeof *now);
  double* then = (double*)calloc((size_t)cells, sizeof *then);
  now[0] = 100;
  for (int step = 0; step < STEPS; step++) {
    for (int i = 0; i < cells; i++)
      then[i] = next_value(now[i > 0 ? i - 1 : 0], now[i], now[i < cells - 1 ? i + 1 : i]);
    double* swap = now;
    now = then;
    then = swap;
  }
  free(then);
  return now;
}

int main(void) {
  dmapp_jobinfo_t job = start();
  struct piece* piece = (struct piece*)symmetric(sizeof *piece);
  const dmapp_pe_t left = job.pe - 1;
  const dmapp_pe_t right = job.pe + 1 < job.npes ? job.pe + 1 : -1;
  double cell[CELLS] = {0};
  double then[CELLS];
  if (job.pe == 0) cell[0] = 100;

  for (uint64_t step = 0; step < STEPS; step++) {
    double(*halo) = piece->halo[step % 2];
    /* My left end is my left neighbour's right halo. */
    if (left >= 0) MUST(dmapp_put_nbi(&halo[1], &job.sheap_seg, left, &cell[0], 1, DMAPP_QW));
    if (right >= 0) MUST(dmapp_put_nbi(&halo[0], &job.sheap_seg, right, &cell[CELLS - 1], 1, DMAPP_QW));
    MUST(dmapp_gsync_wait());
    uint64_t done = step + 1;
    if (left >= 0) MUST(dmapp_put_nbi((void*)&piece->step[1], &job.sheap_seg, left, &done, 1, DMAPP_QW));
    if (right >= 0) MUST(dmapp_put_nbi((void*)&piece->step[0], &job.sheap_seg, right, &done, 1, DMAPP_QW));
    MUST(dmapp_gsync_wait());
    while ((left >= 0 && piece->step[0] <= step) || (right >= 0 && piece->step[1] <= step))
      MUST(dmapp_progress());
    const double at_left = left >= 0 ? halo[0] : cell[0];
    const double at_right = right >= 0 ? halo[1] : cell[CELLS - 1];
    for (int i = 0; i < CELLS; i++)
      then[i] = next_value(i > 0 ? cell[i - 1] : at_left, cell[i], i < CELLS - 1 ? cell[i + 1] : at_right);
    memcpy(cell, then, sizeof cell);
  }

  double* expected = alone(CELLS * job.npes);
  const int wrong = memcmp(cell, expected + CELLS * job.pe, sizeof cell) != 0;
  free(expected);
  return finish(&job, "halo", wrong);
}
