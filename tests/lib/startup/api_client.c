/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */

/* The first second and the last of a client of SHMEM, DMAPP, Portals 4, Portals 3.3 or CCI, by the macro that
 * it is compiled with: usage api_client WAY SIZE. It starts the library, checks how many processes there are,
 * meets the others, and ends in that way. */
#include <pmi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                       \
  do {                                                                    \
    if (!(what)) {                                                        \
      dprintf(2, "api_client.c:%d: %s does not hold\n", __LINE__, #what); \
      _exit(1);                                                           \
    }                                                                     \
  } while (0)

static int g_size;

#if defined(API_SHMEM)
#include <shmem.h>
static long g_never;
static void start(void) {
  shmem_init();
  CHECK(shmem_n_pes() == g_size);
}
static void meet(void) { shmem_barrier_all(); }
static void* wait_for_ever(void* unused) {
  shmem_long_wait_until(&g_never, SHMEM_CMP_EQ, 1);
  return unused;
}
static void finish(void) { shmem_finalize(); }
#elif defined(API_DMAPP)
#include <dmapp.h>
static void start(void) {
  dmapp_rma_attrs_t actual;
  dmapp_jobinfo_t job;
  CHECK(dmapp_init(NULL, &actual) == DMAPP_RC_SUCCESS && dmapp_get_jobinfo(&job) == DMAPP_RC_SUCCESS);
  CHECK(job.npes == g_size);
}
static void meet(void) { CHECK(PMI_Barrier() == PMI_SUCCESS); }
static void* wait_for_ever(void* unused) { /* no call of it blocks without an end */
  for (;;) dmapp_gsync_wait();
  return unused;
}
static void finish(void) { CHECK(dmapp_finalize() == DMAPP_RC_SUCCESS); }
#else
static int g_pmi;
static void join(void) {
  int spawned = 0, size = 0;
  CHECK(PMI_Init(&spawned) == PMI_SUCCESS && PMI_Get_size(&size) == PMI_SUCCESS && size == g_size);
  g_pmi = 1;
}
static void meet(void) { CHECK(PMI_Barrier() == PMI_SUCCESS); }
#if defined(API_PORTALS4)
#include <portals4.h>
static ptl_handle_ni_t g_ni;
static ptl_handle_eq_t g_queue;
static void start(void) {
  join();
  CHECK(PtlInit() == PTL_OK);
  CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &g_ni) ==
        PTL_OK);
  CHECK(PtlEQAlloc(g_ni, 16, &g_queue) == PTL_OK);
}
static void* wait_for_ever(void* unused) {
  ptl_event_t event;
  (void)PtlEQWait(g_queue, &event);
  return unused;
}
static void finish(void) {
  CHECK(PtlNIFini(g_ni) == PTL_OK);
  PtlFini();
  CHECK(PMI_Finalize() == PMI_SUCCESS);
}
#elif defined(API_PORTALS3)
#include <p3utils.h>
#include <portals3.h>
static ptl_handle_ni_t g_ni;
static ptl_handle_eq_t g_queue;
static void start(void) {
  join();
  CHECK(PtlInit(NULL) == PTL_OK);
  CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &g_ni) == PTL_OK);
  CHECK(PtlEQAlloc(g_ni, 16, PTL_EQ_HANDLER_NONE, &g_queue) == PTL_OK);
}
static void* wait_for_ever(void* unused) {
  ptl_event_t event;
  (void)PtlEQWait(g_queue, &event);
  return unused;
}
static void finish(void) {
  CHECK(PtlNIFini(g_ni) == PTL_OK);
  PtlFini();
  CHECK(PMI_Finalize() == PMI_SUCCESS);
}
#elif defined(API_CCI)
#include <cci.h>
#include <poll.h>
static cci_endpoint_t* g_endpoint;
static cci_os_handle_t g_handle;
static void start(void) {
  uint32_t capabilities;
  join();
  CHECK(cci_init(CCI_ABI_VERSION, 0, &capabilities) == CCI_SUCCESS);
  CHECK(cci_create_endpoint(NULL, 0, &g_endpoint, &g_handle) == CCI_SUCCESS);
}
static void* wait_for_ever(void* unused) {
  struct pollfd on = {.fd = g_handle, .events = POLLIN};
  cci_event_t* event;
  while (cci_get_event(g_endpoint, &event) != CCI_SUCCESS) (void)poll(&on, 1, -1);
  return unused;
}
static void finish(void) {
  CHECK(cci_destroy_endpoint(g_endpoint) == CCI_SUCCESS && cci_finalize() == CCI_SUCCESS);
  CHECK(PMI_Finalize() == PMI_SUCCESS);
}
#endif
#endif

static void* return_later(void* unused) {
  usleep(20000);
  return unused;
}

static void* end_here(void* unused) {
  (void)unused;
  exit(0);
}

static void exit_by_signal(int signal_number) { exit(signal_number == SIGTERM ? 0 : 1); }

/* The library is started by a constructor of the program, before main. */
static int g_started;
__attribute__((constructor)) static void before_main(int argc, char** argv) {
  g_size = argc > 2 ? atoi(argv[2]) : 1;
  if (argc > 1 && strcmp(argv[1], "constructor") == 0) {
    start();
    g_started = 1;
  }
}

int main(int argc, char** argv) {
  const char* const way = argc > 1 ? argv[1] : "finish";
  if (strcmp(way, "forked") == 0) { /* the child alone is in the job */
    const pid_t child = fork();
    if (child != 0) {
      int status = 0;
      CHECK(child > 0 && waitpid(child, &status, 0) == child);
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    }
  }
  if (strcmp(way, "stdio") == 0)
    for (int fd = 0; fd < 3; ++fd) close(fd);
  if (!g_started) start();
  if (strcmp(way, "at_once") == 0) exit(3);
  meet();
  pthread_t thread;
  if (strncmp(way, "waiting", 7) == 0) {
    CHECK(pthread_create(&thread, NULL, wait_for_ever, NULL) == 0);
    usleep(20000);
  }
  if (strcmp(way, "return") == 0 || strcmp(way, "waiting") == 0) return 0;
  if (strcmp(way, "waiting_exit") == 0) exit(0);
  if (strcmp(way, "quick_exit") == 0 || strcmp(way, "waiting_quick_exit") == 0) quick_exit(0);
  if (strcmp(way, "waiting__exit") == 0) _exit(0);
  if (strcmp(way, "waiting_signal") == 0) {
    signal(SIGTERM, exit_by_signal);
    raise(SIGTERM);
  }
  if (strcmp(way, "waiting_thread_exit") == 0) { /* main ends as a thread, another one ends the process */
    CHECK(pthread_create(&thread, NULL, end_here, NULL) == 0);
    pthread_exit(NULL);
  }
  if (strcmp(way, "term") == 0) raise(SIGTERM);
  if (strcmp(way, "last_thread") == 0) { /* the process ends with it */
    CHECK(pthread_create(&thread, NULL, return_later, NULL) == 0);
    pthread_exit(NULL);
  }
  if (strcmp(way, "exit_of_a_thread") == 0) {
    CHECK(pthread_create(&thread, NULL, end_here, NULL) == 0);
    for (;;) pause();
  }
  finish();
  return 0;
}
