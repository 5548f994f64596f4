/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/*
 * uGNI: the user-level interface to the Gemini and Aries NICs of the Cray XE and XC machines, here over
 * emulated NICs. Names, values and layouts are those of the machines' own interface, so that programs
 * written for it compile unmodified; docs/sources.md says where each comes from, and which were chosen.
 *
 * The objects:
 *   CDM (communication domain)  one per protection domain of a process; GNI_CdmAttach gives a NIC handle.
 *   NIC handle                  one attachment; every endpoint, queue and registration belongs to one.
 *   EP (endpoint)               where to: a remote NIC address and instance, plus the queue that hears of it.
 *   CQ (completion queue)       events about one's own requests, or about peers' accesses, never both.
 *   memory handle               a registration; 16 bytes that may be copied to any process as they are.
 * Handles of freed, foreign or never created objects are recognised and refused with INVALID_PARAM.
 *
 * How to read the comments:
 *   "Serialise per NIC"   calls that involve one NIC handle or its objects must not run at the same time
 *                         in two threads; calls on different NIC handles may.
 *   "Any thread"          needs no serialisation at all.
 *   "Does not block"      returns without waiting for any other process.
 *   Outputs are written only by the outcomes that say so. Times are milliseconds, sizes bytes.
 *   "uGNI: X"             the clause of the interface that the call implements, by its name there.
 *
 * Usage: #include <gni_pub.h>, with the flags of `pkg-config --cflags cray-gni-headers`.
 */

#include "detail/gni_base.h"
#include "detail/gni_ce_cmd.h"
#include "detail/gni_cq_entry.h"
#include "detail/gni_device_structs.h"
#include "detail/gni_enums.h"
#include "detail/gni_flags.h"
#include "detail/gni_fma_cmd.h"
#include "detail/gni_limits.h"
#include "detail/gni_msgq_structs.h"
#include "detail/gni_structs.h"

#include "detail/gni_cdm.h"
#include "detail/gni_ce.h"
#include "detail/gni_comp_chan.h"
#include "detail/gni_cq.h"
#include "detail/gni_datagram.h"
#include "detail/gni_device.h"
#include "detail/gni_dqueue.h"
#include "detail/gni_ep.h"
#include "detail/gni_errors.h"
#include "detail/gni_job.h"
#include "detail/gni_mem.h"
#include "detail/gni_msgq.h"
#include "detail/gni_post.h"
#include "detail/gni_smsg.h"
