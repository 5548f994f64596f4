/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* Threads that wait for words of their own, and answer, beside a main thread that asks and waits. Their quiet
 * waits for operations of the main thread too, which needs its own context meanwhile. */
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>

enum { kThreads = 2, kRounds = 10 };

static long asked[kThreads], answered[kThreads];
static int me, pes;

static void* answer(void* number) {
  const long mine = (long)number;
  for (long round = 1; round <= kRounds; round++) {
    shmem_long_wait_until(&asked[mine], SHMEM_CMP_GE, round);
    shmem_long_p(&answered[mine], round, (me + pes - 1) % pes);
    shmem_quiet();
  }
  return NULL;
}

int main(void) {
  int provided;
  shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
  me = shmem_my_pe();
  pes = shmem_n_pes();
  shmem_barrier_all();
  pthread_t thread[kThreads];
  for (long i = 0; i < kThreads; i++)
    if (pthread_create(&thread[i], NULL, answer, (void*)i) != 0) shmem_global_exit(1);
  for (long round = 1; round <= kRounds; round++) {
    for (int i = 0; i < kThreads; i++) shmem_long_p(&asked[i], round, (me + 1) % pes);
    for (int i = 0; i < kThreads; i++) shmem_long_wait_until(&answered[i], SHMEM_CMP_GE, round);
  }
  for (int i = 0; i < kThreads; i++) pthread_join(thread[i], NULL);
  shmem_barrier_all();
  if (me == 0) printf("threads: right\n");
  shmem_finalize();
  return 0;
}
