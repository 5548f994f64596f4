/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#include <pthread.h>
#include <shmem.h>
#include <shmemx.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* PE 0 kills PE 1 while all PEs are in calls of the kind that the argument names, again and again. A PE that
 * is left would be in them for ever, unless the library ends the job. */

enum { kWords = 4096, kCount = 3 };
static long word, other, lock, never[kCount], sync_words[SHMEM_SYNC_SIZE];
static long many[kWords], more[8 * kWords];
static uint64_t signal_word;
static pid_t victim;
static int me, npes;
static shmem_team_t team;
static shmem_ctx_t context;

static void* kill_victim(void* nothing) {
  struct timespec while_all_call = {0, 50 * 1000 * 1000};
  nanosleep(&while_all_call, NULL);
  kill(victim, SIGKILL);
  return nothing;
}

static int next(void) { return (me + 1) % npes; }

/* Transfers to the victim, and atomic operations on its memory. */
static void put(void) {
  shmem_long_put(many, more, kWords, 1);
  shmem_long_p(&word, 5, 1);
}
static void get(void) {
  shmem_long_get(more, many, kWords, 1);
  (void)shmem_long_g(&word, 1);
}
static void nbi(void) {
  shmem_long_put_nbi(many, more, kWords, 1);
  shmem_long_get_nbi(more, many, kWords, 1);
  shmem_quiet();
}
static void fence(void) {
  shmem_long_put_nbi(many, more, kWords, 1);
  shmem_fence();
}
static void iput(void) { shmem_long_iput(many, more, 3, 2, 64, 1); }
static void iget(void) { shmem_short_iget((short*)more, (short*)many, 3, 2, 64, 1); }
static void blocks(void) { shmemx_long_ibput(many, more, 8, 4, 3, 16, 1); }
static void by_context(void) {
  shmem_ctx_long_put_nbi(context, many, more, kWords, 1);
  shmem_ctx_quiet(context);
}
static void put_signal(void) {
  shmem_long_put_signal_nbi(many, more, 8, &signal_word, 1, SHMEM_SIGNAL_SET, 1);
}
static void atomic(void) {
  (void)shmem_long_atomic_fetch_add(&word, 1, 1);
  shmem_long_atomic_inc(&other, 1);
  shmem_quiet();
}
static void swap(void) {
  (void)shmem_long_atomic_swap(&word, me, 1);
  (void)shmem_long_atomic_compare_swap(&word, me, 7, 1);
}
static void bitwise(void) {
  static long found;
  shmem_uint64_atomic_or((uint64_t*)&word, 6, 1);
  shmem_long_atomic_fetch_nbi(&found, &word, 1);
  shmem_quiet();
}

/* Waits for what a PE that is gone will not write. */
static void wait_one(void) {
  shmem_long_p(&word, word + 1, next());
  shmem_long_wait_until(&other, SHMEM_CMP_EQ, -1);
}
static void wait_all(void) { shmem_long_wait_until_all(never, kCount, NULL, SHMEM_CMP_EQ, -1); }
static void wait_any(void) { (void)shmem_long_wait_until_any(never, kCount, NULL, SHMEM_CMP_EQ, -1); }
static void wait_some(void) {
  size_t found[kCount];
  (void)shmem_long_wait_until_some(never, kCount, found, NULL, SHMEM_CMP_EQ, -1);
}
static void wait_vector(void) {
  long values[kCount] = {-1, -2, -3};
  shmem_long_wait_until_all_vector(never, kCount, NULL, SHMEM_CMP_EQ, values);
}
static void wait_signal(void) {
  shmem_long_put_signal(many, more, kWords, &signal_word, 1, SHMEM_SIGNAL_ADD, next());
  shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, UINT64_MAX);
}
static void wait_counter(void) {
  static shmemx_ct_t counter;
  if (counter == NULL) shmemx_ct_create(&counter);
  shmemx_ct_wait(counter, 1);
}
static void test(void) {
  while (!shmem_long_test(&other, SHMEM_CMP_EQ, -1)) {
  }
}
static void test_any(void) {
  while (shmem_long_test_any(never, kCount, NULL, SHMEM_CMP_EQ, -1) == SIZE_MAX) {
  }
}

/* Each holder holds it long: mostly PE 1, when it dies. */
static void set_lock(void) {
  shmem_set_lock(&lock);
  if (me == 1) pause();
  shmem_clear_lock(&lock);
}
/* PE 1 holds the lock when it dies; PE 0 waits for it, while PE 2 waits for the end of PE 0 outside the
 * library. The three locks lie with three PEs. */
static long locks[3], is_held;
static void wait_for_lock(int which) {
  if (me == 1) {
    shmem_set_lock(&locks[which]);
    shmem_long_p(&is_held, 1, 0);
    shmem_quiet();
  }
  if (me == 1) pause();
  if (me == 2) {
    shmem_long_wait_until(&other, SHMEM_CMP_NE, 0);
    while (kill((pid_t)other, 0) == 0) usleep(1000);
    _exit(0);
  }
  shmem_long_p(&other, (long)getpid(), 2);
  shmem_quiet();
  shmem_long_wait_until(&is_held, SHMEM_CMP_EQ, 1);
  shmem_set_lock(&locks[which]);
}
static void lock_0(void) { wait_for_lock(0); }
static void lock_1(void) { wait_for_lock(1); }
static void lock_2(void) { wait_for_lock(2); }
static void test_lock(void) {
  if (shmem_test_lock(&lock) != 0) return;
  if (me == 1) pause();
  shmem_clear_lock(&lock);
}

/* Collectives. */
static void barrier(void) { shmem_barrier_all(); }
static void sync_all(void) { shmem_sync_all(); }
static void team_sync(void) { shmem_team_sync(team); }
static void active_set(void) {
  if (me < npes - 1) shmem_barrier(0, 0, npes - 1, sync_words);
  if (me == npes - 1) wait_all();
}
static void active_reduce(void) {
  static long pwrk[SHMEM_REDUCE_MIN_WRKDATA_SIZE + kWords];
  if (me < npes - 1) shmem_long_sum_to_all(many, more, kWords, 0, 0, npes - 1, pwrk, sync_words);
  if (me == npes - 1) wait_all();
}
static void broadcast(void) {
  shmem_long_broadcast(SHMEM_TEAM_WORLD, many, many, kWords, 0);
  shmem_team_sync(SHMEM_TEAM_WORLD);
}
static void reduce(void) { shmem_long_sum_reduce(SHMEM_TEAM_WORLD, many, many, kWords); }
static void reduce_one(void) { shmem_long_sum_reduce(SHMEM_TEAM_WORLD, many, many, 1); }
static void reduce_team(void) { shmem_double_max_reduce(team, (double*)many, (double*)many, kWords); }
static void collect(void) { shmem_long_collect(SHMEM_TEAM_WORLD, more, many, kWords); }
static void fcollect(void) { shmem_long_fcollect(team, more, many, kWords); }
static void alltoall(void) { shmem_long_alltoall(SHMEM_TEAM_WORLD, many, more, 16); }
static void alltoalls(void) { shmem_long_alltoalls(team, many, more, 2, 3, 16); }
static void scan(void) { shmemx_long_sum_inscan(SHMEM_TEAM_WORLD, many, more, kWords); }
static void split(void) {
  shmem_team_t made;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &made);
  shmem_team_destroy(made);
}
static void split_2d(void) {
  shmem_team_t rows, columns;
  shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &rows, NULL, 0, &columns);
  shmem_team_destroy(rows);
  shmem_team_destroy(columns);
}
static void allocate(void) { shmem_free(shmem_malloc(64)); }
static void reallocate(void) {
  static void* block;
  block = shmem_realloc(block, (size_t)(64 + rand() % 64));
  shmem_free(shmem_align(4096, 64));
  shmem_free(shmem_calloc(8, 8));
}
/* The victim does not come to it. */
static void finalize(void) {
  if (me == 1) pause();
  shmem_finalize();
}

static const struct {
  const char* name;
  void (*call)(void);
} kKinds[] = {
    {"put", put},
    {"get", get},
    {"nbi", nbi},
    {"fence", fence},
    {"iput", iput},
    {"iget", iget},
    {"blocks", blocks},
    {"context", by_context},
    {"put_signal", put_signal},
    {"atomic", atomic},
    {"swap", swap},
    {"bitwise", bitwise},
    {"wait", wait_one},
    {"wait_all", wait_all},
    {"wait_any", wait_any},
    {"wait_some", wait_some},
    {"wait_vector", wait_vector},
    {"signal", wait_signal},
    {"counter", wait_counter},
    {"test", test},
    {"test_any", test_any},
    {"lock", set_lock},
    {"lock_0", lock_0},
    {"lock_1", lock_1},
    {"lock_2", lock_2},
    {"test_lock", test_lock},
    {"barrier", barrier},
    {"sync_all", sync_all},
    {"team_sync", team_sync},
    {"active_set", active_set},
    {"active_reduce", active_reduce},
    {"broadcast", broadcast},
    {"reduce", reduce},
    {"reduce_one", reduce_one},
    {"reduce_team", reduce_team},
    {"collect", collect},
    {"fcollect", fcollect},
    {"alltoall", alltoall},
    {"alltoalls", alltoalls},
    {"scan", scan},
    {"split", split},
    {"split_2d", split_2d},
    {"malloc", allocate},
    {"realloc", reallocate},
    {"finalize", finalize},
};

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void (*call)(void) = NULL;
  for (size_t i = 0; i < sizeof kKinds / sizeof kKinds[0]; ++i)
    if (strcmp(argv[1], kKinds[i].name) == 0) call = kKinds[i].call;
  const int killed_at_start = strcmp(argv[1], "init") == 0;
  const int ends_at_start = strcmp(argv[1], "exit") == 0;
  if (call == NULL && !killed_at_start && !ends_at_start) {
    fprintf(stderr, "unknown kind %s\n", argv[1]);
    return 2;
  }
  int level;
  shmem_init_thread(SHMEM_THREAD_MULTIPLE, &level);
  me = shmem_my_pe();
  npes = shmem_n_pes();
  if (call == NULL) {
    /* PE 1 ends before any other one has spoken to it. */
    if (me == 1 && killed_at_start) kill(getpid(), SIGKILL);
    if (me == 1) exit(3);
    call = barrier;
  }
  shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, NULL, 0, &team);
  shmem_ctx_create(SHMEM_CTX_PRIVATE, &context);
  static long pids[64];
  shmem_long_p(&pids[me], (long)getpid(), 0);
  shmem_barrier_all();
  pthread_t killer;
  if (me == 0) {
    victim = (pid_t)pids[1];
    if (pthread_create(&killer, NULL, kill_victim, NULL) != 0) return 2;
  }
  for (;;) call();
}
