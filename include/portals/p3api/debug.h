/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * Masks of PtlNIDebug, which prints nothing here. The values are this library's own. */
#ifndef ORRERY_P3API_DEBUG_H
#define ORRERY_P3API_DEBUG_H

#define PTL_DBG_API 0x1u
#define PTL_DBG_PARSE 0x2u
#define PTL_DBG_MOVE 0x4u
#define PTL_DBG_DROP 0x8u
#define PTL_DBG_REQUEST 0x10u
#define PTL_DBG_DELIVERY 0x20u
#define PTL_DBG_MD 0x40u
#define PTL_DBG_ME 0x80u
#define PTL_DBG_UNLINK 0x100u
#define PTL_DBG_EQ 0x200u
#define PTL_DBG_EVENT 0x400u
#define PTL_DBG_MEMORY 0x800u
#define PTL_DBG_SETUP 0x1000u
#define PTL_DBG_SHUTDOWN 0x2000u
#define PTL_DBG_ALL 0xffffu
#define PTL_DBG_NI_ALL 0xffff0000u
/* The same as programs for Cray's machines name them. */
#define PTL_DEBUG_DROP PTL_DBG_DROP
#define PTL_DEBUG_ALL PTL_DBG_ALL
#define PTL_DEBUG_NI_ALL PTL_DBG_NI_ALL

#endif
