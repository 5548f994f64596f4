/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * The rank, the number of processes, their places and a barrier, by the names that the first implementations
 * of Portals 4 gave their launcher's side. Signatures as public clients use them; what each does is this
 * library's choice (docs/sources.md). Each call joins the launcher's PMI if the program has not, and leaves
 * it at the program's end. Thread safety: one call at a time. */
#ifndef ORRERY_PORTALS4_RUNTIME_H
#define ORRERY_PORTALS4_RUNTIME_H

#include <portals4.h>

#ifdef __cplusplus
extern "C" {
#endif

struct runtime_proc_t {
  ptl_nid_t nid;
  ptl_pid_t pid;
};

/* This process's rank, and how many there are; without a launcher 0 of 1. */
int runtime_get_rank(void);
int runtime_get_size(void);
/* The physical id of each rank: what it has if it has opened an interface before, else what PTL_PID_ANY will
 * give it. The first call returns when every process of the program has made it. `map`: the library's array,
 * valid until the program ends. Returns how many there are; -1: the launcher or the NIC is not there (the log
 * says why), or `map` is null. */
int runtime_get_nidpid_map(struct runtime_proc_t** map);
/* Returns when every process of the program is in it. */
void runtime_barrier(void);

#ifdef __cplusplus
}
#endif
#endif
