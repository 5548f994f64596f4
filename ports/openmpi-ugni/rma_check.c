/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */

/* MPI's one-sided calls against what a serial program would have computed: every rank works on every other's
 * window at once, with operations whose order does not matter. Prints one line and ends with 0 when all is
 * right. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRounds = 200, kCells = 64, kBlock = 4096 };

static int wrong;
static int rank, size;

/* A window on memory of our own. One that Open MPI allocates is shared memory between the ranks of a node. */
static void* make_window(size_t bytes, int unit, MPI_Win* window) {
  void* memory = calloc(1, bytes);
  MPI_Win_create(memory, (MPI_Aint)bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, window);
  return memory;
}

static void expect(int64_t got, int64_t wanted, const char* what) {
  if (got == wanted) return;
  if (wrong++ < 5)
    fprintf(stderr, "rank %d: %s is %lld, not %lld\n", rank, what, (long long)got, (long long)wanted);
}

/* Every rank adds 1 to a counter of rank 0: the old values seen are all different. */
static void tickets(void) {
  MPI_Win window;
  int64_t* counter = make_window(sizeof *counter, sizeof *counter, &window);
  MPI_Barrier(MPI_COMM_WORLD);
  int64_t mine[kRounds];
  const int64_t one = 1;
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < kRounds; ++i) {
    MPI_Fetch_and_op(&one, &mine[i], MPI_INT64_T, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    if (i > 0 && mine[i] <= mine[i - 1]) expect(mine[i], mine[i - 1] + 1, "a later ticket");
  }
  MPI_Win_unlock_all(window);
  int64_t* all = rank == 0 ? malloc(sizeof mine * (size_t)size) : NULL;
  MPI_Gather(mine, kRounds, MPI_INT64_T, all, kRounds, MPI_INT64_T, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    char* seen = calloc((size_t)size * kRounds, 1);
    for (int i = 0; i < size * kRounds; ++i) {
      const int known = all[i] >= 0 && all[i] < size * kRounds && !seen[all[i]];
      expect(known, 1, "a ticket that is new and in range");
      if (known) seen[all[i]] = 1;
    }
    free(seen);
    free(all);
  }
  MPI_Win_free(&window);
  free(counter);
}

/* A lock by compare and swap guards a plain counter that is read by get and written by put. Its owner takes
 * no part: Open MPI's compare-and-swap on a rank's own window hands the transport no endpoint (its issue
 * 9146). */
static void guarded_counter(int owner) {
  MPI_Win window;
  int64_t* memory = make_window(2 * sizeof *memory, sizeof *memory, &window); /* the lock, the counter */
  MPI_Barrier(MPI_COMM_WORLD);
  const int64_t open = 0, taken = rank + 1;
  MPI_Win_lock_all(0, window);
  for (int i = 0; rank != owner && i < kRounds / 4; ++i) {
    int64_t was = -1;
    do {
      MPI_Compare_and_swap(&taken, &open, &was, MPI_INT64_T, owner, 0, window);
      MPI_Win_flush(owner, window);
    } while (was != open);
    int64_t value;
    MPI_Get(&value, 1, MPI_INT64_T, owner, 1, 1, MPI_INT64_T, window);
    MPI_Win_flush(owner, window);
    ++value;
    MPI_Put(&value, 1, MPI_INT64_T, owner, 1, 1, MPI_INT64_T, window);
    MPI_Win_flush(owner, window);
    MPI_Fetch_and_op(&open, &was, MPI_INT64_T, owner, 0, MPI_REPLACE, window);
    MPI_Win_flush(owner, window);
    expect(was, taken, "the lock while it was held");
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == owner) {
    MPI_Win_lock(MPI_LOCK_SHARED, owner, 0, window);
    expect(memory[1], (int64_t)(size - 1) * (kRounds / 4), "the guarded counter");
    MPI_Win_unlock(owner, window);
  }
  MPI_Win_free(&window);
  free(memory);
}

/* Every rank accumulates into every cell of every rank. */
static void accumulate(void) {
  MPI_Win window;
  int64_t* cells = make_window(kCells * sizeof *cells, sizeof *cells, &window);
  int64_t values[kCells];
  for (int i = 0; i < kCells; ++i) values[i] = (int64_t)(rank + 1) * 1000 + i;
  MPI_Win_fence(0, window);
  for (int to = 0; to < size; ++to)
    MPI_Accumulate(values, kCells, MPI_INT64_T, to, 0, kCells, MPI_INT64_T, MPI_SUM, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < kCells; ++i)
    expect(cells[i], (int64_t)size * (size + 1) / 2 * 1000 + (int64_t)size * i, "an accumulated cell");
  MPI_Win_free(&window);
  free(cells);
}

static unsigned char pattern(int from, int to, int i) {
  return (unsigned char)(from * 37 + to * 11 + i * 7 + i / 256);
}

/* A block of every size from every rank to every rank, by put, and read back by get. */
static void blocks(void) {
  MPI_Win window;
  unsigned char* memory = make_window((size_t)kBlock * (size_t)size, 1, &window);
  unsigned char out[kBlock], back[kBlock];
  MPI_Win_fence(0, window);
  for (int to = 0; to < size; ++to) {
    for (int i = 0; i < kBlock; ++i) out[i] = pattern(rank, to, i);
    int at = 0;
    for (int bytes = 1; at < kBlock; bytes = bytes * 3 / 2 + 1) { /* odd sizes at odd places */
      const int part = bytes < kBlock - at ? bytes : kBlock - at;
      MPI_Put(out + at, part, MPI_BYTE, to, (MPI_Aint)rank * kBlock + at, part, MPI_BYTE, window);
      at += part;
    }
    MPI_Win_fence(0, window);
  }
  for (int from = 0; from < size; ++from)
    for (int i = 0; i < kBlock; ++i)
      expect(memory[from * kBlock + i], pattern(from, rank, i), "a byte that was put");
  MPI_Win_fence(0, window);
  for (int to = 0; to < size; ++to) {
    memset(back, 0, sizeof back);
    MPI_Get(back + 1, kBlock - 3, MPI_BYTE, to, (MPI_Aint)rank * kBlock + 1, kBlock - 3, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    for (int i = 1; i < kBlock - 2; ++i) expect(back[i], pattern(rank, to, i), "a byte that was got");
  }
  MPI_Win_free(&window);
  free(memory);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  tickets();
  for (int owner = 0; owner < size; ++owner) guarded_counter(owner);
  accumulate();
  blocks();
  int all_wrong = 0;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks: %s (%d wrong)\n", size, all_wrong == 0 ? "right" : "WRONG", all_wrong);
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}
