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
 *   layout         out: sizes; may be NULL
 *   placementList  for each process: its node's number
 *   targetNids     for each node, in the order of their first processes: its number,
 *   targetPes      its first process,
 *   targetLen      how many processes it has,
 *   targetIps      its address: 127.0.0.1, also where the job has other hosts
 *   nodePes        as targetLen
 *   startPe        for each command (layout->numCmds): its first process,
 *   totalPes       how many processes it has
 *   peCpus         for each process: CPUs, 1
 * Returns 1; below 0 on failure, with nothing changed: a job that is not this one, no memory. May join the
 * job, which takes some milliseconds. Any thread.
 */
int alps_get_placement_info(uint64_t apid, alpsAppLayout_t* layout, int** placementList, int** targetNids,
                            int** targetPes, int** targetLen, struct in_addr** targetIps, int** startPe,
                            int** totalPes, int** nodePes, int** peCpus);

#ifdef __cplusplus
}
#endif
