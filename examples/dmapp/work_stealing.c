/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Work stealing: PE 0 begins with all tasks. A PE whose list is empty takes half of another's, under that
 * list's lock; the victim works on meanwhile and is not asked. A lock is an 8-byte word in the victim's
 * memory, zero when it is free; the PEs that wait for it get it in the order in which they came.
 * Run: orrery run -n 4 ./work_stealing
 */
#include "start.h"

#include <sched.h>

#define TASKS 2000

/* One a PE. Tasks first .. last - 1 are still to do. */
struct list {
  dmapp_lock_desc_t lock;
  int64_t first, last;
};

static struct list list; /* static: all zero, so the lock is free */
static int64_t done;     /* of all PEs, kept by PE 0 */
static int64_t sum;
static dmapp_jobinfo_t job;

/* Takes tasks of the list of a PE: one of its own, half of another's. */
static int64_t take(dmapp_pe_t victim, int64_t* first) {
  dmapp_lock_handle_t held;
  struct list seen;
  MUST(dmapp_lock_acquire(&list.lock, &job.data_seg, victim, 0, &held));
  MUST(dmapp_get(&seen.first, &list.first, &job.data_seg, victim, 2, DMAPP_QW));
  const int64_t there = seen.last - seen.first;
  const int64_t wanted = victim == job.pe ? there > 0 : (there + 1) / 2;
  *first = seen.first;
  seen.first += wanted;
  if (wanted > 0) MUST(dmapp_put(&list.first, &job.data_seg, victim, &seen.first, 1, DMAPP_QW));
  MUST(dmapp_lock_release(held, 0));
  return wanted;
}

/* Puts tasks into this PE's own list. */
static void keep(int64_t first, int64_t count) {
  dmapp_lock_handle_t held;
  int64_t range[2] = {first, first + count};
  MUST(dmapp_lock_acquire(&list.lock, &job.data_seg, job.pe, 0, &held));
  MUST(dmapp_put(&list.first, &job.data_seg, job.pe, range, 2, DMAPP_QW));
  MUST(dmapp_lock_release(held, 0));
}

/* What a task is: some microseconds of arithmetic; its result is its number. */
static int64_t work(int64_t task) {
  volatile double sink = 1;
  for (int i = 0; i < 20000; i++) sink = sink * 0.999 + 1;
  return task;
}

int main(void) {
  job = start();
  if (job.pe == 0) list.last = TASKS;
  PMI_Barrier();

  int64_t mine = 0, finished = 0;
  dmapp_pe_t victim = job.pe;
  while (finished < TASKS) {
    int64_t task;
    if (take(job.pe, &task) == 1) {
      MUST(dmapp_aadd_qw_nbi(&sum, &job.data_seg, 0, work(task)));
      MUST(dmapp_aadd_qw_nbi(&done, &job.data_seg, 0, 1));
      mine++;
      continue;
    }
    victim = (victim + 1) % job.npes;
    if (victim != job.pe) {
      const int64_t stolen = take(victim, &task);
      if (stolen > 0) keep(task, stolen);
    }
    MUST(dmapp_gsync_wait());
    MUST(dmapp_get(&finished, &done, &job.data_seg, 0, 1, DMAPP_QW));
    sched_yield();
  }
  PMI_Barrier();
  printf("PE %d did %ld tasks\n", job.pe, (long)mine);
  const int64_t expected = (int64_t)TASKS * (TASKS - 1) / 2;
  return finish(&job, "work_stealing", job.pe == 0 && (sum != expected || done != TASKS));
}
