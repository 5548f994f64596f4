/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * GUPS: random updates of a table that is spread over all PEs, by AMOs. An update is an exclusive or, so
 * the same updates once more give the first table back: that is how the result is checked. AMOs lose
 * nothing, so no word may differ.
 * Run: orrery run -n 4 ./gups [updates of a PE]
 */
#include "start.h"

#include <time.h>

#define WORDS 16384 /* of one PE */

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t random_next(uint64_t* state) {
  uint64_t x = *state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return *state = x;
}

static void update(dmapp_jobinfo_t* job, int64_t* table, long updates) {
  uint64_t state = 88172645463325252u + (uint64_t)job->pe;
  for (long i = 0; i < updates; i++) {
    const uint64_t value = random_next(&state);
    const dmapp_pe_t pe = (dmapp_pe_t)(value >> 32) % job->npes;
    /* A call that has no room for one more operation waits until there is: nothing need be counted here. */
    MUST(dmapp_axor_qw_nbi(table + value % WORDS, &job->sheap_seg, pe < 0 ? pe + job->npes : pe,
                           (int64_t)value));
  }
  MUST(dmapp_gsync_wait());
}

int main(int argc, char** argv) {
  const long updates = argc > 1 ? atol(argv[1]) : 100000;
  dmapp_jobinfo_t job = start();
  int64_t* table = (int64_t*)symmetric(WORDS * sizeof *table);
  for (int64_t i = 0; i < WORDS; i++) table[i] = i;
  PMI_Barrier();

  const double begin = seconds();
  update(&job, table, updates);
  PMI_Barrier();
  const double took = seconds() - begin;
  update(&job, table, updates);
  PMI_Barrier();

  int wrong = 0;
  for (int64_t i = 0; i < WORDS; i++) wrong += table[i] != i;
  if (job.pe == 0) printf("%.6f GUPS\n", 1e-9 * (double)updates * job.npes / took);
  return finish(&job, "gups", wrong);
}
