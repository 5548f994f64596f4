/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Process management interface, version 2, as far as it is here: what this header declares works, the other
 * calls of version 2 are not declared. It may be mixed with version 1 in one program.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#define PMI2_SUCCESS 0
#define PMI2_FAIL (-1)
#define PMI2_ERR_INIT 1
#define PMI2_ERR_NOMEM 2
#define PMI2_ERR_INVALID_ARG 3
#define PMI2_ERR_INVALID_KEY 4
#define PMI2_ERR_INVALID_KEY_LENGTH 5
#define PMI2_ERR_INVALID_VAL 6
#define PMI2_ERR_INVALID_VAL_LENGTH 7
#define PMI2_ERR_INVALID_LENGTH 8
#define PMI2_ERR_INVALID_NUM_ARGS 9
#define PMI2_ERR_INVALID_ARGS 10
#define PMI2_ERR_INVALID_NUM_PARSED 11
#define PMI2_ERR_INVALID_KEYVALP 12
#define PMI2_ERR_INVALID_SIZE 13
#define PMI2_ERR_OTHER 14

/* Longest key and value, with the terminating zero. */
#define PMI2_MAX_KEYLEN 64
#define PMI2_MAX_VALLEN 1024
#define PMI2_MAX_ATTRVALUE 1024
/* src_pmi_id of PMI2_KVS_Get when the process that put the key is not known. */
#define PMI2_ID_NULL (-1)

int PMI2_Init(int* spawned, int* size, int* rank, int* appnum);
/* Whether PMI2_Init or PMI_Init has been called: 1 or 0, no error code. */
int PMI2_Initialized(void);
int PMI2_Finalize(void);
/* Ends the whole job (flag is not looked at: a process cannot end alone); does not return. */
int PMI2_Abort(int flag, const char msg[]);

int PMI2_Job_GetId(char jobid[], int jobid_size);

int PMI2_KVS_Put(const char key[], const char value[]);
/* Makes what was put visible to all processes; a barrier. */
int PMI2_KVS_Fence(void);
/* jobid may be null: this job's. *vallen becomes the length of the value, or minus that when maxvalue is
 * too small for it and its terminating zero: then as much as fits is copied, and PMI2_ERR_INVALID_VAL_LENGTH.
 */
int PMI2_KVS_Get(const char* jobid, int src_pmi_id, const char key[], char value[], int maxvalue,
                 int* vallen);

/* Known: PMI_process_mapping, universeSize. *found becomes 0 for others, which is no error. */
int PMI2_Info_GetJobAttr(const char name[], char value[], int valuelen, int* found);

#ifdef __cplusplus
}
#endif
