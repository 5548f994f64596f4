/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * How programs for Cray's XT machines ask the launcher for their rank and the others' places. Signatures as
 * public clients declare them; what each does is this library's choice (docs/sources.md). Each call joins the
 * launcher's PMI if the program has not. Thread safety: one call at a time. */
#ifndef ORRERY_CNOS_MPI_OS_H
#define ORRERY_CNOS_MPI_OS_H

#include "portals3.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  ptl_nid_t nid;
  ptl_pid_t pid;
} cnos_nidpid_map_t;

/* This process's rank, and how many there are; without a launcher 0 of 1. */
int cnos_get_rank(void);
int cnos_get_size(void);
/* The place of each rank, as PtlGetRankId gives it; the library's, valid until the next call. After
 * PtlNIInit. Returns how many there are; -1: no interface is open, or `map` is null. */
int cnos_get_nidpid_map(cnos_nidpid_map_t** map);
/* Nothing is to be done for them. 0. */
void cnos_barrier_init(ptl_handle_ni_t ni_handle);
int cnos_register_ptlid(ptl_process_id_t id);
/* Returns when every process of the program is in it. 0; -1: the launcher cannot. */
int cnos_barrier(void);
/* The same; with `last` not 0 the process needs the launcher no more. */
void cnos_pm_barrier(int last);

#ifdef __cplusplus
}
#endif

#endif
