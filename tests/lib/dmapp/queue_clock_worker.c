/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* Messages to a queue that the library's own thread serves, under the virtual clock: PE 0 sends one every
 * 100 us, and says when; the callback notes its time, and answers. Each comes less than 10 us after it was
 * sent, whatever PE 1's program does meanwhile: sleep, poll, or wait in a barrier. */
#include <dmapp.h>
#include <pmi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MESSAGES 10

static dmapp_queue_handle_t queue;
static dmapp_jobinfo_t job;
static int64_t came, latest; /* how many, and ns from a message's sending to its callback, at most */

static void must(dmapp_return_t code, const char* call) {
  if (code == DMAPP_RC_SUCCESS) return;
  fprintf(stderr, "%s: %d\n", call, (int)code);
  PMI_Abort(1, call);
}
#define MUST(call) must(call, #call)

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int on_message(void* context, void* data, uint32_t bytes, dmapp_pe_t from) {
  int64_t sent;
  (void)context;
  if (bytes != sizeof sent) return 0;
  memcpy(&sent, data, sizeof sent);
  const int64_t taken = now() - sent;
  if (taken > latest) latest = taken;
  if (job.pe == 1) {
    int64_t answer = now();
    MUST(dmapp_queue_put(queue, &answer, 1, DMAPP_QW, from, 0));
  }
  __atomic_fetch_add(&came, 1, __ATOMIC_RELEASE);
  return 0;
}

static int has_all(void) { return __atomic_load_n(&came, __ATOMIC_ACQUIRE) == MESSAGES; }

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "";
  dmapp_rma_attrs_ext_t attributes, actual;
  MUST(dmapp_get_rma_attrs_ext(&attributes));
  attributes.queue_flags = DMAPP_QUEUE_ASYNC_PROGRESS;
  attributes.max_concurrency = 2;
  MUST(dmapp_init_ext(&attributes, &actual));
  MUST(dmapp_get_jobinfo(&job));
  MUST(dmapp_queue_attach(on_message, NULL, 0, &queue));
  PMI_Barrier();
  if (job.pe == 0) {
    for (int i = 0; i < MESSAGES; i++) {
      usleep(100);
      int64_t sent = now();
      MUST(dmapp_queue_put(queue, &sent, 1, DMAPP_QW, 1, 0));
    }
    while (!has_all()) MUST(dmapp_progress());
  } else if (strcmp(how, "poll") == 0) {
    while (!has_all()) MUST(dmapp_progress());
  } else if (strcmp(how, "sleep") == 0) {
    while (!has_all()) usleep(10);
  }
  PMI_Barrier();
  printf("pe %d: %d messages, the latest after %d ns\n", (int)job.pe, (int)came, (int)latest);
  if (!has_all() || latest >= 10000) printf("pe %d: WRONG\n", (int)job.pe);
  MUST(dmapp_queue_detach(queue, 0));
  MUST(dmapp_finalize());
  return 0;
}
