/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * A client's first second: joins, attaches, meets the next PE, leaves. Fails when it is not one of argv[1]
 * PEs, or when one of its descriptors 0 to 2 is the runtime's. argv[2], if any: "unfinalised" leaves without
 * PMI_Finalize. */
#include <gni_pub.h>
#include <pmi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char* what) {
  char line[200];
  /* stderr may be closed. */
  const int n = snprintf(line, sizeof line, "start_worker: %s\n", what);
  if (write(2, line, (size_t)n) != n) return 98;
  return 99;
}

int main(int argc, char** argv) {
  int spawned = 0, rank = -1, size = 0;
  if (argc < 2) return fail("how many PEs?");
  if (PMI_Init(&spawned) != PMI_SUCCESS) return fail("PMI_Init");
  PMI_Get_rank(&rank);
  PMI_Get_size(&size);
  if (size != atoi(argv[1]) || rank < 0 || rank >= size) return fail("another number of PEs");
  for (int i = 0; i < 3; ++i) {
    char name[40], is[64] = "";
    snprintf(name, sizeof name, "/proc/self/fd/%d", i);
    if (readlink(name, is, sizeof is - 1) > 0 &&
        (strstr(is, "anon_inode") != NULL || strstr(is, "memfd") != NULL || strstr(is, "socket:") != NULL))
      return fail(is);
  }
  const char* const tag = getenv("PMI_GNI_PTAG");
  const char* const cookie = getenv("PMI_GNI_COOKIE");
  if (tag == NULL || cookie == NULL) return fail("PMI_GNI_PTAG");
  gni_cdm_handle_t cdm = NULL;
  gni_nic_handle_t nic = NULL;
  gni_cq_handle_t queue = NULL;
  gni_ep_handle_t endpoint = NULL;
  uint32_t address = 0;
  if (GNI_CdmCreate((uint32_t)rank, (uint8_t)atoi(tag), (uint32_t)strtoul(cookie, NULL, 10), 0, &cdm) !=
          GNI_RC_SUCCESS ||
      GNI_CdmAttach(cdm, 0, &address, &nic) != GNI_RC_SUCCESS ||
      GNI_CqCreate(nic, 16, 0, GNI_CQ_NOBLOCK, NULL, NULL, &queue) != GNI_RC_SUCCESS)
    return fail("GNI_CdmAttach");
  struct card {
    int rank;
    uint32_t address;
    gni_mem_handle_t handle;
    uint64_t at;
  } mine = {rank, address, {0, 0}, 0};
  static uint64_t words[512];
  mine.at = (uint64_t)(uintptr_t)words;
  if (GNI_MemRegister(nic, mine.at, sizeof words, NULL, 0, UINT32_MAX, &mine.handle) != GNI_RC_SUCCESS)
    return fail("GNI_MemRegister");
  struct card* const all = calloc((size_t)size, sizeof *all);
  if (all == NULL || PMI_Allgather(&mine, all, sizeof mine) != PMI_SUCCESS) return fail("PMI_Allgather");
  struct card next = mine;
  for (int i = 0; i < size; ++i)
    if (all[i].rank == (rank + 1) % size) next = all[i];
  if (GNI_EpCreate(nic, queue, &endpoint) != GNI_RC_SUCCESS ||
      GNI_EpBind(endpoint, next.address, (uint32_t)next.rank) != GNI_RC_SUCCESS)
    return fail("GNI_EpBind");
  words[1] = (uint64_t)rank + 1;
  gni_post_descriptor_t post;
  memset(&post, 0, sizeof post);
  post.type = GNI_POST_FMA_PUT;
  post.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
  post.local_addr = mine.at + 8;
  post.local_mem_hndl = mine.handle;
  post.remote_addr = next.at;
  post.remote_mem_hndl = next.handle;
  post.length = 8;
  if (GNI_PostFma(endpoint, &post) != GNI_RC_SUCCESS) return fail("GNI_PostFma");
  gni_cq_entry_t event = 0;
  gni_return_t got = GNI_RC_NOT_DONE;
  while ((got = GNI_CqGetEvent(queue, &event)) == GNI_RC_NOT_DONE) continue;
  if (got != GNI_RC_SUCCESS) return fail("GNI_CqGetEvent");
  if (PMI_Barrier() != PMI_SUCCESS) return fail("PMI_Barrier");
  if (words[0] != (uint64_t)((rank + size - 1) % size) + 1) return fail("the put of the PE before");
  if (PMI_Barrier() != PMI_SUCCESS) return fail("PMI_Barrier");
  free(all);
  if (argc > 2) _exit(0);
  if (GNI_CdmDestroy(cdm) != GNI_RC_SUCCESS) return fail("GNI_CdmDestroy");
  return PMI_Finalize() == PMI_SUCCESS ? 0 : fail("PMI_Finalize");
}
