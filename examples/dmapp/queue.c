/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Queues: messages that run a function at their target. A thread of the library calls it there, while the
 * program computes (DMAPP_QUEUE_ASYNC_PROGRESS). The function may call DMAPP itself: here it answers by an
 * AMO to the sender.
 * Run: orrery run -n 4 ./queue
 */
#include "start.h"

#define MESSAGES 200

static int64_t answers;  /* to this PE */
static int64_t received; /* by this PE; only the library's thread changes it */
static int64_t sum;
static dmapp_jobinfo_t job;

static int on_message(void* context, void* data, uint32_t bytes, dmapp_pe_t from) {
  int64_t value;
  (void)context;
  if (bytes < sizeof value) return 0;
  memcpy(&value, data, sizeof value);
  sum += value;
  received++;
  MUST(dmapp_aadd_qw(&answers, &job.data_seg, from, 1));
  return 0;
}

int main(void) {
  dmapp_rma_attrs_ext_t attributes, actual;
  MUST(dmapp_get_rma_attrs_ext(&attributes)); /* the defaults */
  attributes.queue_flags = DMAPP_QUEUE_ASYNC_PROGRESS;
  attributes.max_concurrency = 2; /* this thread, and the library's that runs on_message */
  MUST(dmapp_init_ext(&attributes, &actual));
  MUST(dmapp_get_jobinfo(&job));
  dmapp_queue_handle_t queue;
  MUST(dmapp_queue_attach(on_message, NULL, 0, &queue));
  PMI_Barrier();

  for (int64_t i = 0; i < MESSAGES; i++) {
    /* The value may be used again when the call returns. */
    MUST(dmapp_queue_put(queue, &i, 1, DMAPP_QW, (dmapp_pe_t)(job.pe + 1 + i) % job.npes, 0));
  }
  while (__atomic_load_n(&answers, __ATOMIC_ACQUIRE) < MESSAGES) MUST(dmapp_progress());
  PMI_Barrier(); /* every message of every PE is answered: none is under way */

  int64_t expected = 0;
  for (dmapp_pe_t from = 0; from < job.npes; from++)
    for (int64_t i = 0; i < MESSAGES; i++)
      if ((from + 1 + i) % job.npes == job.pe) expected += i;
  const int wrong = sum != expected;
  MUST(dmapp_queue_detach(queue, 0));
  return finish(&job, "queue", wrong);
}
