/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright 2026 the Orrery authors
 *
 * Where Portals 3 programs say that debugging output is to go; there is none here. */
#ifndef ORRERY_P3_DEBUG_H
#define ORRERY_P3_DEBUG_H

#include <inttypes.h>
#include <stdio.h>

/* Formats of printf for a handle, a ptl_size_t, a ptl_seq_t, and a nid with its pid. */
#define FMT_SEQ_T "%" PRIu32
#define FMT_HDL_T "0x%" PRIx32
#define FMT_SZ_T "%" PRIu64
#define FMT_NIDPID "%" PRIu32 ":%" PRIu32

#ifdef __cplusplus
extern "C" {
#endif

extern FILE* p3_out;

#ifdef __cplusplus
}
#endif

#endif
