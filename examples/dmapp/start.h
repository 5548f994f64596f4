/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * What every DMAPP program begins with. A PE
 *   1. calls dmapp_init, which joins the job and gives it its number;
 *   2. asks dmapp_get_jobinfo for that number, and for the two segments that every PE has at the same place:
 *      the static variables (data_seg) and the symmetric heap (sheap_seg);
 *   3. names memory of another PE by its own address, its own segment and the other PE's number.
 */
#pragma once

#include <dmapp.h>
#include <pmi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call that fails ends the job: its peers would wait for ever. */
#define MUST(call)                               \
  do {                                           \
    dmapp_return_t rc_ = (call);                 \
    if (rc_ != DMAPP_RC_SUCCESS) {               \
      const char* text_ = "";                    \
      dmapp_explain_error(rc_, &text_);          \
      fprintf(stderr, "%s: %s\n", #call, text_); \
      PMI_Abort(1, #call);                       \
    }                                            \
  } while (0)

static inline dmapp_jobinfo_t start(void) {
  dmapp_rma_attrs_t actual; /* what holds: nothing else was asked for than the defaults */
  dmapp_jobinfo_t job;
  MUST(dmapp_init(NULL, &actual));
  MUST(dmapp_get_jobinfo(&job));
  return job;
}

/* Symmetric memory, zeroed. Every PE calls this in the same order, and so gets the same address. No PE may
 * use it before the others have zeroed theirs: the barrier waits for them. */
static inline void* symmetric(size_t bytes) {
  void* memory = dmapp_sheap_malloc(bytes);
  if (memory == NULL) PMI_Abort(1, "the symmetric heap is full: set XT_SYMMETRIC_HEAP_SIZE");
  memset(memory, 0, bytes);
  PMI_Barrier();
  return memory;
}

/* Says whether every PE found what it expected; the exit code of the program. */
static inline int finish(const dmapp_jobinfo_t* job, const char* what, int failed) {
  static int64_t failures;
  dmapp_jobinfo_t info = *job;
  PMI_Barrier();
  MUST(dmapp_aadd_qw(&failures, &info.data_seg, 0, failed != 0));
  PMI_Barrier();
  if (job->pe == 0) printf("%s: %s\n", what, failures == 0 ? "right" : "WRONG");
  MUST(dmapp_finalize());
  return failed;
}
