/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* Barriers, broadcasts, reductions and allreduces one after the other, with every rank as root in turn,
 * against what a serial program would have computed. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, ranks, wrong = 0, all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < 200; ++i) {
    const int root = i % ranks;
    MPI_Barrier(MPI_COMM_WORLD);
    int64_t mine = rank + i, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    wrong += sum != (int64_t)ranks * (ranks - 1) / 2 + (int64_t)ranks * i;
    int told = rank == root ? i : -1;
    MPI_Bcast(&told, 1, MPI_INT, root, MPI_COMM_WORLD);
    wrong += told != i;
    double value = rank, most = -1;
    MPI_Reduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, root, MPI_COMM_WORLD);
    wrong += rank == root && most != ranks - 1;
  }
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks: %s (%d wrong)\n", ranks, all == 0 ? "right" : "WRONG", all);
  MPI_Finalize();
  return wrong != 0;
}
