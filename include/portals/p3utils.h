/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * Time limits as Portals 3 programs use them. For C99 and later. */
#ifndef ORRERY_P3UTILS_H
#define ORRERY_P3UTILS_H

#include <stddef.h>
#include <sys/time.h>

typedef struct {
  struct timeval at;
  int armed;
} timeout_val_t;

/* Passes in so many milliseconds. */
static inline void set_timeout(timeout_val_t* limit, int milliseconds) {
  gettimeofday(&limit->at, NULL);
  limit->at.tv_sec += milliseconds / 1000;
  limit->at.tv_usec += (long)(milliseconds % 1000) * 1000;
  if (limit->at.tv_usec >= 1000000) {
    ++limit->at.tv_sec;
    limit->at.tv_usec -= 1000000;
  }
  limit->armed = 1;
}

/* Never passes. */
static inline void clear_timeout(timeout_val_t* limit) { limit->armed = 0; }

/* Whether it has passed. */
static inline int test_timeout(const timeout_val_t* limit) {
  struct timeval now;
  if (!limit->armed) return 0;
  gettimeofday(&now, NULL);
  return now.tv_sec > limit->at.tv_sec ||
         (now.tv_sec == limit->at.tv_sec && now.tv_usec >= limit->at.tv_usec);
}

#endif
