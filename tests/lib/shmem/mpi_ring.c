/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* A program of MPI and OpenSHMEM: ranks and PEs are the same, and both carry on in turns. The argument says
 * which one starts first. */
#include <mpi.h>
#include <shmem.h>
#include <stdio.h>
#include <string.h>

static long word, sum;

static void fail(const char* what, long is, long expected) {
  fprintf(stderr, "%s: %ld: expected %ld\n", what, is, expected);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  const int shmem_first = argc > 1 && strcmp(argv[1], "shmem") == 0;
  if (shmem_first) shmem_init();
  MPI_Init(&argc, &argv);
  if (!shmem_first) shmem_init();
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (shmem_my_pe() != rank) fail("the PE", shmem_my_pe(), rank);
  if (shmem_n_pes() != size) fail("the PEs", shmem_n_pes(), size);
  for (long i = 0; i < 20; ++i) {
    shmem_long_p(&word, rank * 1000 + i, (rank + 1) % size);
    shmem_barrier_all();
    const long expected = (rank + size - 1) % size * 1000 + i;
    if (word != expected) fail("shmem_long_p", word, expected);
    long by_mpi = 0;
    MPI_Allreduce(&word, &by_mpi, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &word, 1);
    if (sum != by_mpi) fail("shmem_long_sum_reduce", sum, by_mpi);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0) printf("ring: right\n");
  shmem_finalize();
  MPI_Finalize();
  return 0;
}
