/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* An application's line to its launcher: a request is put, its answer is read. Between lock and unlock the
 * line is one thread's. All functions but the lock return 0, or -1 for what makes no sense. Values are ours.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Requests. */
#define ALPS_APP_LLI_ALPS_REQ_APID 1    /* answer: the job's number, 8 bytes */
#define ALPS_APP_LLI_ALPS_REQ_GNI 2     /* answer: alpsAppLLIGni_t */
#define ALPS_APP_LLI_ALPS_REQ_START 3   /* the application has begun; no answer */
#define ALPS_APP_LLI_ALPS_REQ_EXITING 4 /* it is about to end; no answer */

/* What an answer says of its request. */
#define ALPS_APP_LLI_ALPS_STAT_OK 0
#define ALPS_APP_LLI_ALPS_STAT_ERROR 1 /* not a request, or the job is not known */

/* A protection domain of the job. */
typedef struct alpsAppGni {
  int device_id;
  uint32_t local_addr; /* PE address of this node's device */
  uint32_t cookie;
  uint8_t ptag;
} alpsAppGni_t;

/* The domains of the job, as many as count says. */
typedef struct alpsAppLLIGni {
  uint64_t count;
  union {
    char buf[8]; /* alpsAppGni_t, one after the other; as long as the answer is */
    alpsAppGni_t first;
  } u;
} alpsAppLLIGni_t;

int alps_app_lli_lock(void); /* waits for the line; 0 */
int alps_app_lli_unlock(void);
/* The bytes at `data` go with the request; none of those above has any. */
int alps_app_lli_put_request(int request, const void* data, size_t bytes);
/* What the answer says, and how many bytes it has. */
int alps_app_lli_get_response(int* status, size_t* count);
/* The next `bytes` bytes of it. */
int alps_app_lli_get_response_bytes(void* data, size_t bytes);
/* Descriptors of the line, for a caller that would keep them open in a child. There are none; all are -1. */
int alps_app_lli_pipes(int to_launcher[2], int from_launcher[2]);

#ifdef __cplusplus
}
#endif
