/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Process management interface, version 1: rank, size of the job, a barrier, and a key-value space to
 * exchange addresses through. Works under `orrery run`, MPICH's mpiexec.hydra, `srun --mpi=pmi2`, and alone.
 *
 * Every call returns PMI_SUCCESS or one of the codes below, and PMI_ERR_INIT before PMI_Init. Calls are for
 * one thread at a time. A forked child may not use its parent's PMI.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#define PMI_SUCCESS 0
#define PMI_FAIL (-1)
#define PMI_ERR_INIT 1
#define PMI_ERR_NOMEM 2
#define PMI_ERR_INVALID_ARG 3
#define PMI_ERR_INVALID_KEY 4
#define PMI_ERR_INVALID_KEY_LENGTH 5
#define PMI_ERR_INVALID_VAL 6
#define PMI_ERR_INVALID_VAL_LENGTH 7
#define PMI_ERR_INVALID_LENGTH 8
#define PMI_ERR_INVALID_NUM_ARGS 9
#define PMI_ERR_INVALID_ARGS 10
#define PMI_ERR_INVALID_NUM_PARSED 11
#define PMI_ERR_INVALID_KEYVALP 12
#define PMI_ERR_INVALID_SIZE 13

typedef int PMI_BOOL;
#define PMI_TRUE 1
#define PMI_FALSE 0

/* Joins the job. *spawned becomes PMI_FALSE. Sets PMI_GNI_PTAG, PMI_GNI_COOKIE, PMI_GNI_DEV_ID and
 * PMI_GNI_LOC_ADDR (decimal lists with colons, one item for each of the job's two domains). If the user has
 * set PMI_GNI_PTAG, only those of the four that are not set. PMI_FAIL, with the reason on stderr, under a
 * launcher whose protocol it does not speak: never is a process of a larger job taken for rank 0 of 1. A
 * second call does nothing. */
int PMI_Init(int* spawned);
int PMI_Initialized(PMI_BOOL* initialized);
int PMI_Finalize(void);

int PMI_Get_size(int* size);
int PMI_Get_rank(int* rank);
int PMI_Get_universe_size(int* size);
int PMI_Get_appnum(int* appnum);

/* Ends when every process of the job has called it. */
int PMI_Barrier(void);
/* Ends the whole job with exit_code; does not return. error_msg may be null. An empty one: the caller has
 * said why, and nothing more is printed. */
int PMI_Abort(int exit_code, const char error_msg[]);

/* Ranks on the same node as the caller, itself included, in ascending order. length: room in ranks[]; less
 * than the clique's size is PMI_ERR_INVALID_LENGTH. */
int PMI_Get_clique_size(int* size);
int PMI_Get_clique_ranks(int ranks[], int length);

/* The key-value space. Lengths include the terminating zero. Others can read a pair after PMI_KVS_Commit and
 * a barrier; a key can be put once. Values may hold any characters. */
int PMI_KVS_Get_my_name(char kvsname[], int length);
int PMI_KVS_Get_name_length_max(int* length);
int PMI_KVS_Get_key_length_max(int* length);
int PMI_KVS_Get_value_length_max(int* length);
int PMI_KVS_Put(const char kvsname[], const char key[], const char value[]);
int PMI_KVS_Commit(const char kvsname[]);
/* PMI_FAIL: no such key. PMI_ERR_INVALID_LENGTH: the value needs more than length bytes. */
int PMI_KVS_Get(const char kvsname[], const char key[], char value[], int length);

#ifdef __cplusplus
}
#endif

#include "pmi_cray_ext.h"
