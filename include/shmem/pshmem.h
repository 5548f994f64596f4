/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "shmem.h"

#include "detail/shmem_names.h"

/*
 * The profiling interface: each function shmem_<name> also as pshmem_<name>. A tool defines functions of the
 * name shmem_<name>, which programs call then, and calls pshmem_<name> in them. Calls that the library makes
 * to itself do not go through the tool.
 */

#ifdef __cplusplus
extern "C" {
#endif

#define PSHMEM_DECLARE_(NAME) extern __typeof__(shmem_##NAME) pshmem_##NAME;
SHMEM_NAMES_JOB_(PSHMEM_DECLARE_)
SHMEM_NAMES_MEMORY_(PSHMEM_DECLARE_)
SHMEM_NAMES_TEAM_(PSHMEM_DECLARE_)
SHMEM_NAMES_RMA_(PSHMEM_DECLARE_)
SHMEM_NAMES_SIGNAL_(PSHMEM_DECLARE_)
SHMEM_NAMES_AMO_(PSHMEM_DECLARE_)
SHMEM_NAMES_SYNC_(PSHMEM_DECLARE_)
SHMEM_NAMES_LOCK_(PSHMEM_DECLARE_)
SHMEM_NAMES_COLLECTIVE_(PSHMEM_DECLARE_)
SHMEM_NAMES_REDUCE_(PSHMEM_DECLARE_)
#undef PSHMEM_DECLARE_
void pshmem_global_exit(int status) __attribute__((noreturn));
void pshmem_sync(int PE_start, int logPE_stride, int PE_size, long* pSync);

#ifdef __cplusplus
}
#endif
