/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * What Cray's PMI has beyond version 1: nodes, collectives, a barrier in two halves.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

int PMI_Get_version_info(int* major, int* minor, int* revision);

/* This job is one application: its size and the rank in it are those of the job. */
int PMI_Get_app_size(int* size);
int PMI_Get_rank_in_app(int* rank);

/* Number of the node that a rank lives on. */
int PMI_Get_nid(int rank, int* nid);
/* *nidlist becomes an array of int, the node number of every rank; it stays valid until PMI_Finalize. */
int PMI_Get_nidlist_ptr(void** nidlist);

/* Processes on the caller's node. length: room in pes[]. */
int PMI_Get_numpes_on_smp(int* count);
int PMI_Get_numpes_in_app_on_smp(int* count);
int PMI_Get_pes_on_smp(int pes[], int length);

/* PMI_Barrier in two halves: between them no other call but PMI_Wait may be made (PMI_FAIL). */
int PMI_Ibarrier(void);
int PMI_Wait(void);

/* Copies length bytes from rank 0's buffer to those of all ranks. */
int PMI_Bcast(void* buffer, int length);
/* Gathers length bytes from every process into out[], size times length bytes. The order is NOT that of the
 * ranks; it is the same for every call and every process of a job. */
int PMI_Allgather(void* in, void* out, int length);
/* As PMI_Allgather, where rank r gives all_lengths[r] bytes; the pieces stand in that same order, one after
 * the other. */
int PMI_Allgatherv(void* in, int length, void* out, int* all_lengths);
/* As PMI_Allgather among the processes of the caller's node. Under `orrery run` the nodes are independent of
 * each other; under other launchers every process of the job has to call it. */
int PMI_Allgather_on_smp(void* in, void* out, int length);

#ifdef __cplusplus
}
#endif
