/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */

/* Calls of uGNI whose log the test knows: one PE that talks to itself. */
#include <stdio.h>
#include <stdlib.h>

#include <gni_pub.h>
#include <pmi.h>

#define CHECK(call)                                                    \
  do {                                                                 \
    const gni_return_t rc = (call);                                    \
    if (rc != GNI_RC_SUCCESS) {                                        \
      fprintf(stderr, "log_client: %s: %s\n", #call, gni_err_str[rc]); \
      return 1;                                                        \
    }                                                                  \
  } while (0)

int main(void) {
  static uint64_t from = 7, to;
  int spawned = 0;
  PMI_Init(&spawned);
  gni_cdm_handle_t cdm;
  gni_nic_handle_t nic;
  gni_cq_handle_t cq;
  gni_ep_handle_t ep;
  gni_mem_handle_t memory;
  gni_cq_entry_t event = 0;
  uint32_t address = 0;
  CHECK(GNI_CdmCreate(77, (uint8_t)atoi(getenv("PMI_GNI_PTAG")), (uint32_t)atol(getenv("PMI_GNI_COOKIE")),
                      GNI_CDM_MODE_ERR_NO_KILL, &cdm));
  CHECK(GNI_CdmAttach(cdm, 0, &address, &nic));
  CHECK(GNI_CqCreate(nic, 8, 0, GNI_CQ_BLOCKING, NULL, NULL, &cq));
  CHECK(GNI_MemRegister(nic, (uint64_t)(uintptr_t)&to, sizeof to, NULL, GNI_MEM_READWRITE, -1, &memory));
  CHECK(GNI_EpCreate(nic, cq, &ep));
  if (GNI_EpBind(NULL, address, 77) != GNI_RC_INVALID_PARAM) return 2;
  CHECK(GNI_EpBind(ep, address, 77));
  for (int i = 0; i < 100; ++i) {
    if (GNI_CqGetEvent(cq, &event) != GNI_RC_NOT_DONE) return 3;
  }
  if (GNI_CqWaitEvent(cq, 1, &event) != GNI_RC_TIMEOUT) return 4;
  gni_post_descriptor_t post = {.type = GNI_POST_FMA_PUT,
                                .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                .local_addr = (uint64_t)(uintptr_t)&from,
                                .remote_addr = (uint64_t)(uintptr_t)&to,
                                .remote_mem_hndl = memory,
                                .length = sizeof from};
  gni_post_descriptor_t* done = NULL;
  CHECK(GNI_PostFma(ep, &post));
  CHECK(GNI_CqWaitEvent(cq, 10000, &event));
  CHECK(GNI_GetCompleted(cq, event, &done));
  CHECK(GNI_CdmDestroy(cdm));
  PMI_Finalize();
  printf("%d\n", to == 7 && done == &post);
  return 0;
}
