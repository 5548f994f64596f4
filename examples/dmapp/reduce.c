/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Collectives of a set of PEs: the NIC's collective engine adds, while the PEs go on. The set is made in
 * three steps: every member creates it, all wait for each other, every member exports it.
 * Run: orrery run -n 4 ./reduce
 */
#include "start.h"

int main(void) {
  dmapp_jobinfo_t job = start();
  dmapp_c_pset_desc_t all;
  memset(&all, 0, sizeof all);
  all.type = DMAPP_C_PSET_DELIMITER_STRIDED;
  all.u.stride_type.base_pe = 0;
  all.u.stride_type.n_pes = job.npes;
  all.u.stride_type.stride_pe = 1;
  dmapp_c_pset_handle_t set;
  MUST(dmapp_c_pset_create(&all, 1, 0, NULL, &set));
  PMI_Barrier();
  MUST(dmapp_c_pset_export(set));

  int wrong = 0;
  for (int64_t round = 1; round <= 20; round++) {
    int64_t mine = round * (job.pe + 1), total = 0;
    MUST(dmapp_c_greduce_start(set, &mine, &total, 1, DMAPP_C_INT64, DMAPP_C_SUM));
    /* ... work that does not need the total ... */
    MUST(dmapp_c_pset_wait(set));
    wrong += total != round * job.npes * (job.npes + 1) / 2;
  }
  MUST(dmapp_c_barrier_join(set));
  MUST(dmapp_c_pset_wait(set));
  MUST(dmapp_c_pset_destroy(set));
  return finish(&job, "reduce", wrong);
}
