// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The smallest client of uGNI and PMI: alone, it is rank 0 of 1 and owns a NIC.
#include <gni_pub.h>
#include <pmi.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  int spawned = 0, rank = -1, size = -1;
  if (PMI_Init(&spawned) != PMI_SUCCESS || PMI_Get_rank(&rank) != PMI_SUCCESS ||
      PMI_Get_size(&size) != PMI_SUCCESS) {
    fprintf(stderr, "no PMI\n");
    return 1;
  }
  const char* ptag = getenv("PMI_GNI_PTAG");
  const char* cookie = getenv("PMI_GNI_COOKIE");
  if (ptag == NULL || cookie == NULL) {
    fprintf(stderr, "PMI_Init set no domain\n");
    return 1;
  }
  gni_cdm_handle_t domain;
  const gni_return_t created =
      GNI_CdmCreate((uint32_t)rank, (uint8_t)atoi(ptag), (uint32_t)atoi(cookie), 0, &domain);
  if (created != GNI_RC_SUCCESS) {
    fprintf(stderr, "GNI_CdmCreate: %s\n", gni_err_str[created]);
    return 1;
  }
  gni_nic_handle_t nic;
  unsigned int address = 0;
  const gni_return_t attached = GNI_CdmAttach(domain, 0, &address, &nic);
  if (attached != GNI_RC_SUCCESS) {
    fprintf(stderr, "GNI_CdmAttach: %s\n", gni_err_str[attached]);
    return 1;
  }
  GNI_CdmDestroy(domain);
  PMI_Finalize();
  printf("rank %d of %d\n", rank, size);
  return 0;
}
