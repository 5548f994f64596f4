/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Where the processes of the job are. */

#include <netinet/in.h>
#include <stdint.h>

#include "alps.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The placement of the job that this process is of. Each list may be NULL, and else becomes one that the
 * caller frees with free().
 *   apid           the job, as ALPS_APP_LLI_ALPS_REQ_APID gives it; 0 for this one
 *   layout         out: sizes
 *   placementList  of each process: the number of its node
 *   targetNids, targetPes, targetLen, targetIps, nodePes
 *                  of each node: its number, its first process, how many processes it has, its address, how
 *                  many processes again
 *   startPe, totalPes
 *                  of each command (layout->numCmds): its first process, how many processes
 *   peCpus         of each process: CPUs
 * Returns 1; below 0 on failure: a job that is not this one, no placement known, no memory. May join the job,
 * which takes some milliseconds. Any thread.
 */
int alps_get_placement_info(uint64_t apid, alpsAppLayout_t* layout, int** placementList, int** targetNids,
                            int** targetPes, int** targetLen, struct in_addr** targetIps, int** startPe,
                            int** totalPes, int** nodePes, int** peCpus);

#ifdef __cplusplus
}
#endif
