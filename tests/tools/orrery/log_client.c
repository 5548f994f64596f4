/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */

/* Calls of uGNI whose log the test knows: one PE that talks to itself.
 * usage: log_client [--rotate | FILE]    --rotate: also looks a thousand times in three ways by turns.
 * FILE: also closes every descriptor that it did not open, writes into FILE under
 * those numbers, forks a child that looks for nothing, and waits on a queue that does not block. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

static int odd(gni_nic_handle_t nic, const char* file) {
  enum { DESCRIPTORS = 64 };
  for (int i = 3; i < DESCRIPTORS; ++i) {
    char link[32], name[256];
    snprintf(link, sizeof link, "/proc/self/fd/%d", i);
    const ssize_t length = readlink(link, name, sizeof name - 1);
    if (length < 0) continue;
    name[length] = 0;
    /* Its log alone: the library needs its own. */
    if (name[length - 2] == '.' && name[length - 1] == '0') {
      close(i);
      if (open(file, O_WRONLY | O_CREAT, 0644) != i) return 5;
    }
  }
  gni_cq_handle_t cq;
  gni_cq_entry_t event = 0xabcdef;
  CHECK(GNI_CqCreate(nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq));
  if (GNI_CqWaitEvent(cq, 1, &event) != GNI_RC_ERROR_RESOURCE || event != 0xabcdef) return 6;
  for (int i = 0; i < 5; ++i) {
    if (GNI_CqGetEvent(cq, &event) != GNI_RC_NOT_DONE) return 7;
  }
  const pid_t child = fork();
  if (child == 0) exit(0);
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) return 8;
  return 0;
}

static int rotate(gni_nic_handle_t nic) {
  gni_cq_handle_t cq;
  gni_cq_entry_t event = 0;
  uint64_t name = 0;
  CHECK(GNI_CqCreate(nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq));
  for (int i = 0; i < 1000; ++i) {
    if (GNI_CqGetEvent(cq, &event) != GNI_RC_NOT_DONE) return 9;
    if (GNI_CqTestEvent(cq) != GNI_RC_NOT_DONE) return 10;
    if (GNI_PostDataProbeById(nic, &name) != GNI_RC_NO_MATCH) return 11;
  }
  return 0;
}

int main(int argc, char** argv) {
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
  const int rotates = argc > 1 && strcmp(argv[1], "--rotate") == 0;
  const int failed = rotates ? rotate(nic) : argc > 1 ? odd(nic, argv[1]) : 0;
  if (failed != 0) return failed;
  CHECK(GNI_CdmDestroy(cdm));
  PMI_Finalize();
  printf("%d\n", to == 7 && done == &post);
  return 0;
}
