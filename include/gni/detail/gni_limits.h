/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Sizes and counts that the interface fixes. */

#include "gni_base.h"

#define GNI_DATAGRAM_MAXSIZE 128        /* bytes of one datagram */
#define GNI_SMSG_MAX_SIZE 65535         /* bytes of one short message */
#define GNI_SMSG_ANY_TAG 0xff           /* GNI_SmsgGetNextWTag: whatever comes */
#define FMA_SMSG_MAX_RETRANS_DEFAULT 10 /* retransmissions before an SMSG connection is broken */
#define GNI_FMA_FLAGGED_RESPONSE_SIZE 4 /* bytes that a *_W_FLAG response appends */
#define GNI_MSGQ_MSG_SZ_MAX 128         /* bytes of one shared-queue message */
#define GNI_MSGQ_NODE_INSTS_MAX 128     /* instances of one node on a shared queue */
#define GNI_CE_MAX_CHILDREN 32          /* of one collective engine */
#define GNI_BI_BW_MIN 0                 /* per cent of the injection bandwidth */
#define GNI_BI_BW_MAX 100
#define GNI_BI_ORB_MIN 0 /* entries of the outstanding request buffer */
#define GNI_BI_ORB_MAX 992
#define GNI_DQUEUE_DEFAULT_ENTRIES 1024
#define GNI_DQUEUE_DEFAULT_MSG_SIZE 192 /* bytes */
#define GNI_MAX_CAPABILITY_WORDS 6      /* of 64 bits, in gni_revision_info_t */
