/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* Stands for the part of Open MPI that ends a rank whose launcher has gone, by its library's name: it sleeps
 * first. */
#include <time.h>

void launcher_sleep(void);

void launcher_sleep(void) {
  const struct timespec moment = {0, 10000000};
  nanosleep(&moment, NULL);
}
