/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* A PE that takes a lock twice waits for itself. */
#include <dmapp.h>
#include <stdio.h>

static dmapp_lock_desc_t lock;

int main(void) {
  dmapp_rma_attrs_t actual;
  dmapp_jobinfo_t job;
  dmapp_lock_handle_t handle;
  if (dmapp_init(NULL, &actual) != DMAPP_RC_SUCCESS || dmapp_get_jobinfo(&job) != DMAPP_RC_SUCCESS) return 1;
  for (int i = 0; i < 2; i++)
    if (dmapp_lock_acquire(&lock, &job.data_seg, 0, 0, &handle) != DMAPP_RC_SUCCESS) return 1;
  printf("WRONG: taken twice\n");
  return 1;
}
