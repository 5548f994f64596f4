/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* Starts DMAPP and ends; its end says whether that went well. */
#include <dmapp.h>
#include <stdio.h>

int main(void) {
  dmapp_rma_attrs_t actual;
  if (dmapp_init(NULL, &actual) != DMAPP_RC_SUCCESS) {
    fputs("no DMAPP\n", stderr);
    return 1;
  }
  return dmapp_finalize() == DMAPP_RC_SUCCESS ? 0 : 1;
}
