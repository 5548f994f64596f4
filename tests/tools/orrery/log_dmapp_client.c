/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* Calls of DMAPP whose lines log_test.cpp expects. */
#include <dmapp.h>

static uint64_t place[3];

int main(void) {
  dmapp_rma_attrs_t actual;
  dmapp_jobinfo_t job;
  const uint64_t words[3] = {1, 2, 3};
  const char* message;
  if (dmapp_init(NULL, &actual) != DMAPP_RC_SUCCESS) return 1;
  dmapp_get_jobinfo(&job);
  dmapp_put(place, &job.data_seg, job.npes - 1, (void*)words, 3, DMAPP_QW);
  dmapp_put(place, &job.data_seg, job.npes, (void*)words, 3, DMAPP_QW);
  dmapp_sheap_free(dmapp_sheap_malloc(64));
  dmapp_explain_error(DMAPP_RC_SUCCESS, &message);
  return dmapp_finalize() != DMAPP_RC_SUCCESS;
}
