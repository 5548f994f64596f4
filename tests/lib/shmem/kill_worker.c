/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#include <pthread.h>
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* PE 0 kills PE 1 while all PEs are in calls of the kind that the argument names, again and again. A PE that
 * is left would be in them for ever, unless the library ends the job. */

enum { kWords = 4096 };
static long word, other, lock, sync_words[SHMEM_SYNC_SIZE];
static long many[kWords], more[8 * kWords];
static pid_t victim;

static void* kill_victim(void* nothing) {
  struct timespec while_all_call = {0, 50 * 1000 * 1000};
  nanosleep(&while_all_call, NULL);
  kill(victim, SIGKILL);
  return nothing;
}

static void make_call(const char* kind, int me, int npes) {
  if (strcmp(kind, "put") == 0) {
    shmem_long_put(many, more, kWords, 1);
    shmem_long_p(&word, 5, 1);
  } else if (strcmp(kind, "nbi") == 0) {
    shmem_long_put_nbi(many, more, kWords, 1);
    shmem_long_get_nbi(more, many, kWords, 1);
    shmem_quiet();
  } else if (strcmp(kind, "get") == 0) {
    shmem_long_get(more, many, kWords, 1);
    (void)shmem_long_g(&word, 1);
  } else if (strcmp(kind, "atomic") == 0) {
    (void)shmem_long_atomic_fetch_add(&word, 1, 1);
    shmem_long_atomic_inc(&other, 1);
    shmem_quiet();
  } else if (strcmp(kind, "wait") == 0) {
    /* A ring: each waits for the one before it. */
    shmem_long_p(&word, word + 1, (me + 1) % npes);
    shmem_long_wait_until(&other, SHMEM_CMP_EQ, -1);
  } else if (strcmp(kind, "test") == 0) {
    while (!shmem_long_test(&other, SHMEM_CMP_EQ, -1)) {
    }
  } else if (strcmp(kind, "signal") == 0) {
    static uint64_t signal;
    shmem_long_put_signal(many, more, kWords, &signal, 1, SHMEM_SIGNAL_ADD, (me + 1) % npes);
    shmem_signal_wait_until(&signal, SHMEM_CMP_EQ, UINT64_MAX);
  } else if (strcmp(kind, "lock") == 0) {
    /* Each holder holds it long: mostly PE 1, when it dies. */
    shmem_set_lock(&lock);
    if (me == 1) pause();
    shmem_clear_lock(&lock);
  } else if (strcmp(kind, "test_lock") == 0) {
    if (shmem_test_lock(&lock) != 0) return;
    if (me == 1) pause();
    shmem_clear_lock(&lock);
  } else if (strcmp(kind, "barrier") == 0) {
    shmem_barrier_all();
  } else if (strcmp(kind, "active_set") == 0) {
    if (me < npes - 1) shmem_barrier(0, 0, npes - 1, sync_words);
    if (me == npes - 1) shmem_long_wait_until(&other, SHMEM_CMP_EQ, -1);
  } else if (strcmp(kind, "broadcast") == 0) {
    shmem_long_broadcast(SHMEM_TEAM_WORLD, many, many, kWords, 0);
    shmem_team_sync(SHMEM_TEAM_WORLD);
  } else if (strcmp(kind, "reduce") == 0) {
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, many, many, kWords);
  } else if (strcmp(kind, "reduce_one") == 0) {
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, many, many, 1);
  } else if (strcmp(kind, "collect") == 0) {
    shmem_long_collect(SHMEM_TEAM_WORLD, more, many, kWords);
  } else if (strcmp(kind, "alltoall") == 0) {
    shmem_long_alltoall(SHMEM_TEAM_WORLD, many, more, 16);
  } else if (strcmp(kind, "malloc") == 0) {
    shmem_free(shmem_malloc(64));
  } else {
    fprintf(stderr, "unknown kind %s\n", kind);
    shmem_global_exit(2);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int level;
  shmem_init_thread(SHMEM_THREAD_MULTIPLE, &level);
  const int me = shmem_my_pe();
  const int npes = shmem_n_pes();
  static long pids[64];
  shmem_long_p(&pids[me], (long)getpid(), 0);
  shmem_barrier_all();
  pthread_t killer;
  if (me == 0) {
    victim = (pid_t)pids[1];
    if (pthread_create(&killer, NULL, kill_victim, NULL) != 0) return 2;
  }
  for (;;) make_call(argv[1], me, npes);
}
