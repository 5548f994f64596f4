/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* Stands for Open MPI's engine of events, by its library's name: what time it finds. */
#include <stdint.h>
#include <time.h>

int64_t engine_time(void);

int64_t engine_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
