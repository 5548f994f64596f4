/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */

/* A plug-in of a program whose main closes it while a thread sleeps in it: opens the library of one interface
 * (argv[1]; the interface is the macro that this is compiled with) and libpmi (argv[2]), starts both, lets a
 * thread wait for what never comes and another one for a moment, and closes both. */
#include <dlfcn.h>
#include <pmi.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define CHECK(what)                                                          \
  do {                                                                       \
    if (!(what)) {                                                           \
      dprintf(2, "unload_client.c:%d: %s does not hold\n", __LINE__, #what); \
      _exit(1);                                                              \
    }                                                                        \
  } while (0)

static void *g_library, *g_pmi;
static void* function(void* library, const char* name) {
  void* const found = dlsym(library, name);
  CHECK(found != NULL);
  return found;
}
/* Of the library, which this program is not linked with. */
#define CALL(name) (__extension__(__typeof__(&name)) function(g_library, #name))
#define PMI_CALL(name) (__extension__(__typeof__(&name)) function(g_pmi, #name))

static int g_started[2];
static volatile int g_over;
static void inside(int which) { __atomic_store_n(&g_started[which], 1, __ATOMIC_RELEASE); }

/* wait_for_ever() and wait_a_moment() look their call up before they say that they are inside. */
#if defined(API_SHMEM)
#include <shmem.h>
static long g_never, g_later;
static void start(void) { CALL(shmem_init)(); }
static void* wait_for_ever(void* unused) {
  __typeof__(&shmem_long_wait_until) wait = CALL(shmem_long_wait_until);
  inside(0);
  wait(&g_never, SHMEM_CMP_EQ, 1);
  return unused;
}
static void* wait_a_moment(void* unused) {
  __typeof__(&shmem_long_wait_until) wait = CALL(shmem_long_wait_until);
  inside(1);
  wait(&g_later, SHMEM_CMP_EQ, 1);
  return unused;
}
static void let_go(void) { __atomic_store_n(&g_later, 1, __ATOMIC_RELEASE); }
#elif defined(API_DMAPP)
#include <dmapp.h>
static void start(void) {
  dmapp_rma_attrs_t actual;
  CHECK(CALL(dmapp_init)(NULL, &actual) == DMAPP_RC_SUCCESS);
}
static void* wait_for_ever(void* unused) { /* no call of it blocks without an end */
  __typeof__(&dmapp_gsync_wait) wait = CALL(dmapp_gsync_wait);
  inside(0);
  for (;;) wait();
  return unused;
}
static void* wait_a_moment(void* unused) {
  __typeof__(&dmapp_gsync_wait) wait = CALL(dmapp_gsync_wait);
  inside(1);
  while (!g_over) wait();
  return unused;
}
static void let_go(void) { g_over = 1; }
#elif defined(API_PORTALS4) || defined(API_PORTALS3)
static void* wait_in_queue(int which);
static void* wait_for_ever(void* unused) {
  (void)wait_in_queue(0);
  return unused;
}
static void* wait_a_moment(void* unused) {
  (void)wait_in_queue(1);
  return unused;
}
static void let_go(void) {}
#if defined(API_PORTALS4)
#include <portals4.h>
static ptl_handle_eq_t g_queue;
static void start(void) {
  ptl_handle_ni_t ni;
  CHECK(CALL(PtlInit)() == PTL_OK);
  CHECK(CALL(PtlNIInit)(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni) ==
        PTL_OK);
  CHECK(CALL(PtlEQAlloc)(ni, 16, &g_queue) == PTL_OK);
}
static void* wait_in_queue(int which) {
  __typeof__(&PtlEQWait) wait = CALL(PtlEQWait);
  __typeof__(&PtlEQPoll) wait_for = CALL(PtlEQPoll);
  ptl_event_t event;
  unsigned int found;
  inside(which);
  if (which == 0) (void)wait(g_queue, &event);
  CHECK(wait_for(&g_queue, 1, 200, &event, &found) == PTL_EQ_EMPTY);
  return NULL;
}
#else
#include <p3utils.h>
#include <portals3.h>
static ptl_handle_eq_t g_queue;
static void start(void) {
  ptl_handle_ni_t ni;
  CHECK(CALL(PtlInit)(NULL) == PTL_OK);
  CHECK(CALL(PtlNIInit)(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK);
  CHECK(CALL(PtlEQAlloc)(ni, 16, PTL_EQ_HANDLER_NONE, &g_queue) == PTL_OK);
}
static void* wait_in_queue(int which) {
  __typeof__(&PtlEQWait) wait = CALL(PtlEQWait);
  __typeof__(&PtlEQPoll) wait_for = CALL(PtlEQPoll);
  ptl_event_t event;
  int found;
  inside(which);
  if (which == 0) (void)wait(g_queue, &event);
  CHECK(wait_for(&g_queue, 1, 200, &event, &found) == PTL_EQ_EMPTY);
  return NULL;
}
#endif
#elif defined(API_CCI)
#include <cci.h>
static cci_endpoint_t* g_endpoint;
static cci_os_handle_t g_handle;
static void start(void) {
  uint32_t capabilities;
  CHECK(CALL(cci_init)(CCI_ABI_VERSION, 0, &capabilities) == CCI_SUCCESS);
  CHECK(CALL(cci_create_endpoint)(NULL, 0, &g_endpoint, &g_handle) == CCI_SUCCESS);
}
/* No call of it blocks: a thread waits by the endpoint's descriptor. */
static void* wait_for_ever(void* unused) {
  __typeof__(&cci_get_event) get = CALL(cci_get_event);
  struct pollfd on = {.fd = g_handle, .events = POLLIN};
  cci_event_t* event;
  inside(0);
  while (get(g_endpoint, &event) != CCI_SUCCESS) (void)poll(&on, 1, -1);
  return unused;
}
static void* wait_a_moment(void* unused) {
  __typeof__(&cci_get_event) get = CALL(cci_get_event);
  cci_event_t* event;
  inside(1);
  while (!g_over) (void)get(g_endpoint, &event);
  return unused;
}
static void let_go(void) { g_over = 1; }
#endif

int main(int argc, char** argv) {
  int spawned = 0;
  pthread_t for_ever, a_moment;
  CHECK(argc == 3);
  g_library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  g_pmi = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  CHECK(g_library != NULL && g_pmi != NULL);
  CHECK(PMI_CALL(PMI_Init)(&spawned) == PMI_SUCCESS);
  start();
  CHECK(pthread_create(&for_ever, NULL, wait_for_ever, NULL) == 0);
  CHECK(pthread_create(&a_moment, NULL, wait_a_moment, NULL) == 0);
  for (int i = 0; i < 2; ++i)
    while (__atomic_load_n(&g_started[i], __ATOMIC_ACQUIRE) == 0) usleep(1000);
  usleep(20000);
  dlclose(g_library);
  dlclose(g_pmi);
  let_go();
  CHECK(pthread_join(a_moment, NULL) == 0);
  return 0;
}
