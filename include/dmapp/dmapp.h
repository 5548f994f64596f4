/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/*
 * DMAPP: one-sided puts, gets and atomic operations on the memory of the other PEs of a job, as on the Cray
 * XE and XC machines, here over emulated NICs. Names and signatures are those of the machines' own interface,
 * so that programs written for it compile unmodified; docs/sources.md says where each comes from and which
 * were chosen.
 *
 * A PE is a process of the job; its number is its rank. Three kinds of memory can be reached from other PEs:
 *   data segment     static variables of the program; jobinfo.data_seg
 *   symmetric heap   dmapp_sheap_malloc; at the same address in every PE; jobinfo.sheap_seg
 *   registered       dmapp_mem_register; its descriptor may be copied to other PEs as raw bytes
 * For the first two, a PE uses its own descriptor and its own address to name the same object of any PE. A
 * local buffer (source of a put, destination of a get) may be any memory.
 *
 * How to read the comments:
 *   Every call returns DMAPP_RC_SUCCESS or one of the codes that its comment names, and
 * DMAPP_RC_INVALID_PARAM where an argument is outside what it accepts, or before dmapp_init.
 *   "_nb" calls give a handle that dmapp_syncid_wait or _test takes; "_nbi" calls are completed by
 * dmapp_gsync_wait or _test; the other calls return when the operation is complete at its target. Until then
 * the local buffers belong to the library. A call that has no room for one more operation waits until there
 * is; it does not fail. Complete means: visible to every PE. What a call starts makes progress while its
 * target computes. Any thread may call. Outputs are written only by the outcomes that say so.
 *
 * Usage: #include <dmapp.h>, with the flags of `pkg-config --cflags --libs cray-dmapp`.
 */

#include <gni_pub.h>

#include "detail/dmapp_types.h"

#include "detail/dmapp_amo.h"
#include "detail/dmapp_collective.h"
#include "detail/dmapp_env.h"
#include "detail/dmapp_rma.h"
#include "detail/dmapp_sync.h"
