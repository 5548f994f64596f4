/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * Time limits as Portals 3 programs use them. */
#ifndef ORRERY_P3UTILS_H
#define ORRERY_P3UTILS_H

#include <time.h>

typedef struct {
  struct timespec at;
  int armed;
} timeout_val_t;

/* Passes in so many milliseconds. */
static inline void set_timeout(timeout_val_t* limit, int milliseconds) {
  timespec_get(&limit->at, TIME_UTC);
  limit->at.tv_sec += milliseconds / 1000;
  limit->at.tv_nsec += (long)(milliseconds % 1000) * 1000000;
  if (limit->at.tv_nsec >= 1000000000) {
    ++limit->at.tv_sec;
    limit->at.tv_nsec -= 1000000000;
  }
  limit->armed = 1;
}

/* Never passes. */
static inline void clear_timeout(timeout_val_t* limit) { limit->armed = 0; }

/* Whether it has passed. */
static inline int test_timeout(const timeout_val_t* limit) {
  struct timespec now;
  if (!limit->armed) return 0;
  timespec_get(&now, TIME_UTC);
  return now.tv_sec > limit->at.tv_sec ||
         (now.tv_sec == limit->at.tv_sec && now.tv_nsec >= limit->at.tv_nsec);
}

#endif
