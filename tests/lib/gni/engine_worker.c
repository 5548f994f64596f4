/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * An engine of events in virtual time: a round of the program's thread after a look in vain finds
 * 20 ms more. A thread of the launcher's that runs another engine finds no earlier time, or what
 * the program tells it to do at once would be far ahead: PMIx_Finalize() of an Open MPI that has
 * PMIx within waited for a minute. Nor is the program's thread far behind, however little it looks:
 * PMIx_Finalize() gives its server 2 s from the program's time on. A thread of the launcher's that
 * sleeps does so in real time, though the program computes on, and makes no call: a rank whose
 * mpirun had gone was left behind.
 * Run: orrery run -n 1 --machine aries engine_worker
 */
#include <gni_pub.h>
#include <inttypes.h>
#include <pmi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int64_t engine_time(void);
void launcher_sleep(void);

static void must(int well, const char* what) {
  if (well) return;
  fprintf(stderr, "engine_worker: %s\n", what);
  exit(1);
}

static void* other_thread(void* found) {
  *(int64_t*)found = engine_time();
  return NULL;
}

/* Reads in real time, half a second of it later: the program's sleeps take virtual time. */
static void* late_thread(void* found) {
  const struct timespec half_a_second = {0, 500000000};
  syscall(SYS_nanosleep, &half_a_second, NULL);
  return other_thread(found);
}

static volatile int g_slept;
static void* sleeping_thread(void* unused) {
  launcher_sleep();
  g_slept = 1;
  return unused;
}

static int64_t time_of_thread(void* (*body)(void*)) {
  int64_t found = 0;
  pthread_t thread;
  must(pthread_create(&thread, NULL, body, &found) == 0, "pthread_create");
  must(pthread_join(thread, NULL) == 0, "pthread_join");
  return found;
}

int main(void) {
  int spawned = 0;
  gni_cdm_handle_t cdm;
  gni_nic_handle_t nic;
  gni_cq_handle_t queue;
  gni_cq_entry_t event;
  uint32_t address = 0;
  must(PMI_Init(&spawned) == PMI_SUCCESS, "PMI_Init");
  must(GNI_CdmCreate(0, (uint8_t)atoi(getenv("PMI_GNI_PTAG")), (uint32_t)atoi(getenv("PMI_GNI_COOKIE")), 0,
                     &cdm) == GNI_RC_SUCCESS,
       "GNI_CdmCreate");
  must(GNI_CdmAttach(cdm, 0, &address, &nic) == GNI_RC_SUCCESS, "GNI_CdmAttach");
  must(GNI_CqCreate(nic, 16, 0, GNI_CQ_NOBLOCK, NULL, NULL, &queue) == GNI_RC_SUCCESS, "GNI_CqCreate");

  engine_time();
  const int64_t late = time_of_thread(late_thread);
  const int64_t behind = late - engine_time();
  printf("without looks the engine is %" PRId64 " ns behind another thread's\n", behind);
  must(behind <= 150000000, "the engine of a program that does not look is behind");

  /* Looks in a row would be a wait for what does not come. */
  const int64_t began = engine_time();
  for (int round = 0; round < 3000; round++) {
    must(GNI_CqGetEvent(queue, &event) == GNI_RC_NOT_DONE, "an event of nothing");
    engine_time();
    if (round % 10 == 9) must(PMI_Barrier() == PMI_SUCCESS, "PMI_Barrier");
  }
  const int64_t mine = engine_time();
  must(mine - began >= INT64_C(60) * 1000000000, "rounds of the engine take no time");
  const int64_t other = time_of_thread(other_thread);
  printf("another thread's engine is %" PRId64 " ns ahead\n", other - mine);
  must(other >= mine, "another thread's engine finds an earlier time");
  struct timespec from;
  struct timespec to;
  pthread_t sleeper;
  clock_gettime(CLOCK_MONOTONIC, &from);
  must(pthread_create(&sleeper, NULL, sleeping_thread, NULL) == 0, "pthread_create");
  while (!g_slept) continue;
  must(pthread_join(sleeper, NULL) == 0, "pthread_join");
  clock_gettime(CLOCK_MONOTONIC, &to);
  must((to.tv_sec - from.tv_sec) * INT64_C(1000000000) + to.tv_nsec - from.tv_nsec < 10000000,
       "a sleep of the launcher's takes the program's time");
  PMI_Finalize();
  return 0;
}
