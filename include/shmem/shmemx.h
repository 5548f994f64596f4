/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "shmem.h"

/* Extensions that public programs call, under their names. */

#ifdef __cplusplus
extern "C" {
#endif

/* Changes a signal without data: an AMO that is complete behind shmem_quiet. */
void shmemx_signal_set(uint64_t* sig_addr, uint64_t signal, int pe);
void shmemx_signal_add(uint64_t* sig_addr, uint64_t signal, int pe);
/* Seconds of a clock that never goes back. */
double shmemx_wtime(void);

#ifdef __cplusplus
}
#endif
