/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */

/* A client's first second, in the ways in which it comes about: usage startup_client WAY SIZE. Every way ends
 * with a put to the right neighbour. Exit code 0: all was as a client expects. */
#include <dlfcn.h>
#include <fcntl.h>
#include <gni_pub.h>
#include <pmi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                           \
  do {                                                                        \
    if (!(what)) {                                                            \
      dprintf(2, "startup_client.c:%d: %s does not hold\n", __LINE__, #what); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

/* What a constructor of the client sees, which runs after those of the libraries that it links. */
static char g_early_ptag[64], g_early_cookie[64], g_early_address[64];
static void copy(char* to, const char* name) {
  const char* const value = getenv(name);
  snprintf(to, 64, "%s", value == NULL ? "" : value);
}
__attribute__((constructor)) static void before_main(void) {
  copy(g_early_ptag, "PMI_GNI_PTAG");
  copy(g_early_cookie, "PMI_GNI_COOKIE");
  copy(g_early_address, "PMI_GNI_LOC_ADDR");
}

static int g_rank, g_size;

struct Peer {
  int rank;
  uint32_t nic;
  uint64_t address;
  gni_mem_handle_t memory;
};

static void join(void) {
  int spawned = 0;
  CHECK(PMI_Init(&spawned) == PMI_SUCCESS);
  CHECK(PMI_Get_rank(&g_rank) == PMI_SUCCESS && PMI_Get_size(&g_size) == PMI_SUCCESS);
}

/* PMI is there while the processes meet; what follows needs it no more. */
static void put_to_the_right(int finalize_first) {
  const uint8_t ptag = (uint8_t)atoi(getenv("PMI_GNI_PTAG"));
  const uint32_t cookie = (uint32_t)strtoul(getenv("PMI_GNI_COOKIE"), NULL, 10);
  gni_cdm_handle_t domain;
  gni_nic_handle_t nic;
  gni_cq_handle_t queue;
  struct Peer mine = {.rank = g_rank};
  CHECK(GNI_CdmCreate((uint32_t)g_rank, ptag, cookie, 0, &domain) == GNI_RC_SUCCESS);
  CHECK(GNI_CdmAttach(domain, 0, &mine.nic, &nic) == GNI_RC_SUCCESS);
  CHECK(mine.nic == strtoul(getenv("PMI_GNI_LOC_ADDR"), NULL, 10));
  CHECK(GNI_CqCreate(nic, 64, 0, GNI_CQ_NOBLOCK, NULL, NULL, &queue) == GNI_RC_SUCCESS);
  uint64_t* const words = calloc(1024, sizeof *words);
  words[1] = 1000u + (unsigned)g_rank;
  mine.address = (uint64_t)(uintptr_t)words;
  CHECK(GNI_MemRegister(nic, mine.address, 8192, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &mine.memory) ==
        GNI_RC_SUCCESS);
  struct Peer* const all = calloc((size_t)g_size, sizeof *all);
  CHECK(PMI_Allgather(&mine, all, sizeof mine) == PMI_SUCCESS);
  const struct Peer* right = NULL;
  for (int i = 0; i < g_size; ++i)
    if (all[i].rank == (g_rank + 1) % g_size) right = &all[i];
  CHECK(right != NULL);
  CHECK(PMI_Barrier() == PMI_SUCCESS);
  if (finalize_first) CHECK(PMI_Finalize() == PMI_SUCCESS);
  gni_ep_handle_t ep;
  CHECK(GNI_EpCreate(nic, queue, &ep) == GNI_RC_SUCCESS);
  CHECK(GNI_EpBind(ep, right->nic, (uint32_t)right->rank) == GNI_RC_SUCCESS);
  gni_post_descriptor_t put = {.type = GNI_POST_FMA_PUT,
                               .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                               .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
                               .local_addr = mine.address + 8,
                               .remote_addr = right->address,
                               .remote_mem_hndl = right->memory,
                               .length = 8};
  CHECK(GNI_PostFma(ep, &put) == GNI_RC_SUCCESS);
  gni_cq_entry_t event;
  gni_return_t got;
  while ((got = GNI_CqGetEvent(queue, &event)) == GNI_RC_NOT_DONE) sched_yield();
  CHECK(got == GNI_RC_SUCCESS);
  gni_post_descriptor_t* done = NULL;
  CHECK(GNI_GetCompleted(queue, event, &done) == GNI_RC_SUCCESS && done == &put);
  const uint64_t expected = 1000u + (unsigned)((g_rank + g_size - 1) % g_size);
  while (*(volatile uint64_t*)words != expected) sched_yield();
  if (!finalize_first) {
    CHECK(PMI_Barrier() == PMI_SUCCESS);
    CHECK(PMI_Finalize() == PMI_SUCCESS);
  }
  free(all);
}

static void close_all_but_stdio(void) {
  for (int fd = 3; fd < 1024; ++fd) close(fd);
}

/* It stands for a closed descriptor where a launcher's library opens some at any time (docs/porting.md). */
static int is_null_device(int fd) {
  struct stat there, null;
  return fstat(fd, &there) == 0 && stat("/dev/null", &null) == 0 && there.st_rdev == null.st_rdev;
}

static int wait_for(pid_t pid) {
  int status = 0;
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int main(int argc, char** argv) {
  const char* const way = argc > 1 ? argv[1] : "plain";
  const int size = argc > 2 ? atoi(argv[2]) : 1;
  if (strcmp(way, "closed") == 0 || strcmp(way, "reused") == 0) {
    /* A parent that closes what it inherited starts the client, as Python's subprocess does; or other files
     * of it have the same numbers. */
    const pid_t child = fork();
    if (child == 0) {
      const char* fd = getenv("PMI_FD");
      close_all_but_stdio();
      if (strcmp(way, "reused") == 0) {
        const int null = open("/dev/null", O_RDWR);
        if (fd != NULL) dup2(null, atoi(fd));
        if ((fd = getenv("ORRERY_JOB_FD")) != NULL) dup2(null, atoi(fd));
      }
      execl(argv[0], argv[0], "plain", argv[2], (char*)NULL);
      _exit(127);
    }
    return wait_for(child);
  }
  if (strcmp(way, "forked") == 0) { /* the child alone speaks PMI */
    const pid_t child = fork();
    if (child == 0) {
      join();
      put_to_the_right(0);
      exit(g_size == size ? 0 : 3);
    }
    return wait_for(child);
  }
  if (strcmp(way, "early") == 0) { /* a library that wants the NIC's variables before PMI_Init has them */
    CHECK(atoi(g_early_ptag) > 0 && strtoul(g_early_cookie, NULL, 10) > 0 && *g_early_address != 0);
    join();
    CHECK(strcmp(getenv("PMI_GNI_PTAG"), g_early_ptag) == 0);
    CHECK(strcmp(getenv("PMI_GNI_COOKIE"), g_early_cookie) == 0);
    CHECK(strcmp(getenv("PMI_GNI_LOC_ADDR"), g_early_address) == 0);
  } else if (strcmp(way, "cut") == 0) { /* a client that takes getenv's list apart in place */
    char* const list = getenv("PMI_GNI_PTAG");
    if (list != NULL) strtok(list, ":");
    join();
    CHECK(strchr(getenv("PMI_GNI_PTAG"), ':') != NULL);
  } else if (strcmp(way, "stdio") == 0) { /* what was closed at the start stays the program's */
    for (int fd = 0; fd < 3; ++fd) close(fd);
    join();
    put_to_the_right(0);
    for (int fd = 0; fd < 3; ++fd)
      if (fcntl(fd, F_GETFD) >= 0 && !(getenv("PMIX_NAMESPACE") != NULL && is_null_device(fd)))
        return 10 + fd;
    return g_size == size ? 0 : 3;
  } else if (strcmp(way, "device") == 0) { /* asks the device before any domain is there */
    gni_nic_device_t device;
    CHECK(GNI_GetDeviceType(&device) == GNI_RC_SUCCESS);
    join();
  } else {
    join();
  }
  CHECK(g_size == size);
  put_to_the_right(strcmp(way, "finalized") == 0);
  return 0;
}
