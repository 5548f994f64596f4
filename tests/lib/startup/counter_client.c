/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */

/* Times a barrier by the processor's own counter. */
#include <pmi.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <x86intrin.h>
static uint64_t ticks(void) { return __rdtsc(); }
#else
static uint64_t ticks(void) { return 0; }
#endif

int main(void) {
  int spawned = 0;
  if (PMI_Init(&spawned) != PMI_SUCCESS) return 1;
  const uint64_t before = ticks();
  if (PMI_Barrier() != PMI_SUCCESS) return 2;
  const uint64_t after = ticks();
  return PMI_Finalize() == PMI_SUCCESS && after >= before ? 0 : 3;
}
