/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/*
 * OpenSHMEM 1.5 over the emulated NIC. The specification says what each call does; docs/shmem.md says how it
 * is carried out. An error that the specification leaves open (an address outside the symmetric regions, a
 * PE that does not exist, memory that is too short) ends the job with one line that names the values.
 *
 * Threads: as shmem_init_thread was asked; all calls may be made by any thread with SHMEM_THREAD_MULTIPLE.
 */
#include "detail/shmem_types.h"

#include "detail/shmem_amo.h"
#include "detail/shmem_collective.h"
#include "detail/shmem_env.h"
#include "detail/shmem_old.h"
#include "detail/shmem_rma.h"
#include "detail/shmem_sync.h"

/* Behind what they select from. */
#include "detail/shmem_generic.h"
#include "detail/shmem_overload.h"
