/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* The enumerations, but for the two command sets (gni_fma_cmd.h, gni_ce_cmd.h). */

#ifdef __cplusplus
extern "C" {
#endif

/* What a descriptor asks for. */
typedef enum gni_post_type {
  GNI_POST_RDMA_PUT = 1,
  GNI_POST_RDMA_GET = 2,
  GNI_POST_FMA_PUT = 3,
  GNI_POST_FMA_PUT_W_SYNCFLAG = 4, /* data, then an 8-byte flag that is seen only after it */
  GNI_POST_FMA_GET = 5,
  GNI_POST_AMO = 6,
  GNI_POST_CQWRITE = 7,
  GNI_POST_CE = 8,
  GNI_POST_FMA_GET_W_FLAG = 9, /* the response carries a 4-byte flag behind the data */
  GNI_POST_AMO_W_FLAG = 10
} gni_post_type_t;

/* What became of a datagram. */
typedef enum gni_post_state {
  GNI_POST_PENDING = 0,
  GNI_POST_COMPLETED = 1,
  GNI_POST_ERROR = 2,
  GNI_POST_TIMEOUT = 3,
  GNI_POST_TERMINATED = 4, /* cancelled */
  GNI_POST_REMOTE_DATA = 5 /* the peer's data is here, ours not yet there */
} gni_post_state_t;

/* Kinds of short-message mailbox. */
typedef enum gni_smsg_type {
  GNI_SMSG_TYPE_INVALID = 0,
  GNI_SMSG_TYPE_MBOX = 1,
  GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT = 2
} gni_smsg_type_t;

/* What GNI_MemHndlQueryAttr can be asked. */
typedef enum gni_mem_handle_attr {
  GNI_MEMHNDL_ATTR_READONLY = 1,
  GNI_MEMHNDL_ATTR_VMDH = 2,
  GNI_MEMHNDL_ATTR_MRT = 3,
  GNI_MEMHNDL_ATTR_GART = 4,
  GNI_MEMHNDL_ATTR_IOMMU = 5,
  GNI_MEMHNDL_ATTR_PCI_IOMMU = 6,
  GNI_MEMHNDL_ATTR_CLONE = 7
} gni_mem_handle_attr_t;

/* Kinds of NIC. */
typedef enum gni_nic_device {
  GNI_DEVICE_GEMINI = 0,
  GNI_DEVICE_ARIES = 1,
  GNI_DEVICE_PISCES = 2,
  GNI_DEVICE_LAST = 3
} gni_nic_device_t;

/* Resources of a device. */
typedef enum gni_dev_res {
  GNI_DEV_RES_FIRST = 0,
  GNI_DEV_RES_MDD = 1,
  GNI_DEV_RES_MRT = 2,
  GNI_DEV_RES_CQ = 3,
  GNI_DEV_RES_FMA = 4,
  GNI_DEV_RES_CE = 5,
  GNI_DEV_RES_DLA = 6,
  GNI_DEV_RES_TCR = 7,
  GNI_DEV_RES_DVA = 8,
  GNI_DEV_RES_VMDH = 9,
  GNI_DEV_RES_LAST = 10
} gni_dev_res_t;

/* Resources of a job on a device. */
typedef enum gni_job_res {
  GNI_JOB_RES_FIRST = 0,
  GNI_JOB_RES_MDD = 1,
  GNI_JOB_RES_MRT = 2,
  GNI_JOB_RES_IOMMU = 3,
  GNI_JOB_RES_GART = 4,
  GNI_JOB_RES_CQ = 5,
  GNI_JOB_RES_FMA = 6,
  GNI_JOB_RES_RDMA = 7,
  GNI_JOB_RES_CE = 8,
  GNI_JOB_RES_DLA = 9,
  GNI_JOB_RES_SFMA = 10,
  GNI_JOB_RES_DIRECT = 11,
  GNI_JOB_RES_PCI_IOMMU = 12,
  GNI_JOB_RES_NONVMDH = 13,
  GNI_JOB_RES_LAST = 14
} gni_job_res_t;

/* Registers of the outstanding request buffer that GNI_SetDeviceOrbMMR can change. */
typedef enum gni_dev_orb_mmr {
  GNI_DEV_ORB_MMR_FIRST = 0,
  GNI_DEV_ORB_MMR_TIMEOUT = 1,
  GNI_DEV_ORB_MMR_LAST = 2
} gni_dev_orb_mmr_t;

/* What an endpoint is in a collective engine's tree. */
typedef enum gni_ce_child {
  GNI_CE_CHILD_UNUSED = 0,
  GNI_CE_CHILD_VCE = 1, /* another engine */
  GNI_CE_CHILD_PE = 2   /* a process, that is a leaf */
} gni_ce_child_t;

/* Counters of a NIC handle. The Aries-only block exists, and shifts what follows it, only for clients that
 * ask for it by the macro; our own flags do not. */
typedef enum gni_statistic {
  GNI_STAT_SMSG_BUFF_CREDITS_STALL = 0,
  GNI_STAT_SMSG_DLA_STALL = 1,
  GNI_STAT_SMSG_MBOX_CREDITS_STALL = 2,
  GNI_STAT_SMSG_REQ_STALL = 3,
  GNI_STAT_SMSG_RETRANS_COUNT = 4,
  GNI_STAT_SMSG_RETRANS_DLA_COUNT = 5,
  GNI_STAT_SMSG_RETRANS_STALL = 6,
#ifdef CRAY_CONFIG_GHAL_ARIES
  GNI_STAT_DLA_ALLOC_STATUS_STALL = 7,
  GNI_STAT_DLA_ALLOC_STATUS_TIMEOUT = 8,
  GNI_STAT_DLA_BLOCK_ORPHANED = 9,
  GNI_STAT_DLA_BLOCK_RETRANS_COUNT = 10,
  GNI_STAT_DLA_FREE_BLOCKS_STALL = 11,
  GNI_STAT_DLA_FREE_FMAD_BLOCKS_STALL = 12,
  GNI_STAT_DLA_HIGH_RETRANS_COUNT = 13,
  GNI_STAT_DLA_OVERFLOW_RESEND = 14,
  GNI_STAT_DLA_RETRANS_COUNT = 15,
  GNI_STAT_DLA_TOTAL_RETRANS_COUNT = 16,
  GNI_STAT_FLBTE_TXD_CORRUPT = 17,
  GNI_STAT_FLBTE_TXD_NONE = 18,
  GNI_STAT_FMA_LAUNCH_COUNT = 19,
#endif
  GNI_STAT_MR_MULTI_PAGESIZE,
  GNI_STAT_NUM_STATS
} gni_statistic_t;
#define GNI_NUM_STATS GNI_STAT_NUM_STATS

/* One text per gni_statistic_t of the numbering without the macro; 21 entries, so that an index of the
 * other numbering stays inside. Any thread. */
extern const char* gni_statistic_str[];

#ifdef __cplusplus
}
#endif
