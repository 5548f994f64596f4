/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * Ranks for Portals 3.3 programs. A rank and the maps come from the program, else from PTL_MY_RID,
 * PTL_NIDMAP and PTL_PIDMAP (colon-separated), else from the launcher; else the process is rank 0 of
 * 1. The handles are not looked at before PtlNIInit. */
#ifndef ORRERY_P3RT_H
#define ORRERY_P3RT_H

#include "../portals3.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rank and size -1: from the environment or the launcher. PTL_FAIL: a rank that is not below size; a variable
 * that cannot be read as numbers; maps of different lengths, or not longer than PTL_MY_RID. The log says
 * which variable. */
int PtlSetRank(ptl_handle_ni_t ni_handle, int rank, int size);
/* Before PtlNIInit. PTL_FAIL (size 0, null). */
int PtlSetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t* map, int size);
int PtlSetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t* map, int size);
int PtlSetJID(ptl_handle_ni_t ni_handle, ptl_jid_t jid);
/* After PtlNIInit: PTL_NI_INVALID before. */
int PtlGetRank(ptl_handle_ni_t ni_handle, unsigned int* rank, unsigned int* size);
/* PTL_PROCESS_INVALID: no such rank. */
int PtlGetRankId(ptl_handle_ni_t ni_handle, unsigned int rank, ptl_process_id_t* id);
int PtlGetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t* map, int size);
int PtlGetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t* map, int size);

#ifdef __cplusplus
}
#endif

#endif
