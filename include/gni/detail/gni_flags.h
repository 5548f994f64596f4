/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Flag bits and small constants. All are macros: clients test some of them with #ifdef. */

#include "gni_base.h"

/* Protection tags (8 bits). On Aries the tag is derived from the cookie: pass GNI_FIND_ALLOC_PTAG. */
#define GNI_PTAG_LND 1
#define GNI_PTAG_OFED 2
#define GNI_PTAG_USER_START 3
#define GNI_PTAG_LND_KNC 128
#define GNI_PTAG_USER_END 253
#define GNI_PTAG_HSNBOOT 254
#define GNI_PTAG_MAX 254
#define GNI_PTAG_LB 255
#define GNI_FIND_ALLOC_PTAG 255

/* Protection keys: the upper 16 bits of a cookie. */
#define GNI_PKEY_INVALID 0
#define GNI_PKEY_LND 1
#define GNI_PKEY_OFED 2
#define GNI_PKEY_USER_START 128
#define GNI_PKEY_USER_END 65407
#define GNI_PKEY_HSNBOOT 65408
#define GNI_PKEY_MAX 65534
#define GNI_PKEY_LB 65535

/* The cookie of a protection key and a memory domain number (0..7). */
#define GNI_JOB_CREATE_COOKIE(pkey, mdd) (((uint32_t)(pkey) << 16) | (((uint32_t)(mdd)&7u) << 3))

/* GNI_CdmCreate: modes. */
#define GNI_CDM_MODE_FORK_NOCOPY 0x00000001u   /* a child of fork sees none of the registered pages */
#define GNI_CDM_MODE_FORK_FULLCOPY 0x00000002u /* a child gets its own copy of them all */
#define GNI_CDM_MODE_FORK_PARTCOPY 0x00000004u /* default: of the partly used pages only */
#define GNI_CDM_MODE_ERR_NO_KILL 0x00000008u   /* a failed transaction is an event, and no more */
#define GNI_CDM_MODE_ERR_ALL_KILL 0x00000010u  /* any error ends the process */
#define GNI_CDM_MODE_FAST_DATAGRAM_POLL 0x00000020u
#define GNI_CDM_MODE_BTE_SINGLE_CHANNEL 0x00000040u
#define GNI_CDM_MODE_USE_PCI_IOMMU 0x00000080u
#define GNI_CDM_MODE_MDD_DEDICATED 0x00000100u
#define GNI_CDM_MODE_MDD_SHARED 0x00000200u
#define GNI_CDM_MODE_DUAL_EVENTS 0x00001000u /* posts may ask for LOCAL and GLOBAL events at once */
#define GNI_CDM_MODE_DLA_ENABLE_FORWARDING 0x00004000u
#define GNI_CDM_MODE_DLA_DISABLE_FORWARDING 0x00008000u
#define GNI_CDM_MODE_FMA_DEDICATED 0x00010000u /* an FMA descriptor of our own, or ERROR_RESOURCE */
#define GNI_CDM_MODE_FMA_SHARED 0x00020000u
#define GNI_CDM_MODE_CACHED_AMO_ENABLED 0x00040000u
#define GNI_CDM_MODE_CQ_NIC_LOCAL_PLACEMENT 0x00080000u
#define GNI_CDM_MODE_FLBTE_DISABLE 0x00100000u
#define GNI_CDM_MODE_FMA_SMALL_WINDOW 0x00200000u
#define GNI_CDM_MODE_PRIV_RESERVED_1 0x10000000u
#define GNI_CDM_MODE_PRIV_RESERVED_2 0x20000000u
#define GNI_CDM_MODE_PRIV_RESERVED_3 0x40000000u
#define GNI_CDM_MODE_PRIV_RESERVED_4 0x80000000u
#define GNI_CDM_MODE_MASK 0x0fffffffu

/* GNI_MemRegister, GNI_MemRegisterSegments: flags. STRICT wins over RELAXED. */
#define GNI_MEM_READWRITE 0x00000000u
#define GNI_MEM_READ_ONLY 0x00000001u /* remote puts and AMOs are refused */
#define GNI_MEM_USE_VMDH 0x00000002u
#define GNI_MEM_USE_GART 0x00000004u
#define GNI_MEM_PHYS_CONT 0x00000008u
#define GNI_MEM_PHYS_SEGMENTS 0x00000010u
#define GNI_MEM_STRICT_PI_ORDERING 0x00000020u
#define GNI_MEM_PI_FLUSH 0x00000040u
#define GNI_MEM_MDD_CLONE 0x00000080u
#define GNI_MEM_RELAXED_PI_ORDERING 0x00000100u
#define GNI_MEM_RESERVE_REGION 0x00000200u
#define GNI_MEM_UPDATE_REGION 0x00000400u
#define GNI_MEM_MDD_SHARED 0x00000800u
#define GNI_MEM_MDD_DEDICATED 0x00001000u
#define GNI_MEM_PRIV_RESERVED_1 0x00100000u
#define GNI_MEM_PRIV_RESERVED_2 0x00200000u
#define GNI_MEM_PRIV_RESERVED_3 0x00400000u
#define GNI_MEM_PRIV_RESERVED_4 0x00800000u
#define GNI_MEM_CUDA 0x01000000u
#define GNI_EXMEM_FLAGS(flags) ((flags) >> 24) /* the part that names memory outside the host */

/* GNI_CqCreate: mode bits, of type gni_cq_mode_t. */
#define GNI_CQ_NOBLOCK 0x00000000u
#define GNI_CQ_BLOCKING 0x00000001u /* waits and interrupt masks are allowed */
#define GNI_CQ_EMULATED 0x00000002u /* internal */
#define GNI_CQ_PHYS_PAGES 0x00000004u
#define GNI_CQ_UNMANAGED 0x00000008u /* a sink: never polled, overruns do no harm */
#define GNI_CQ_NOAUTOFILL 0x00000010u
#define GNI_CQ_IS_BLOCKING(mode) (((mode)&GNI_CQ_BLOCKING) != 0)
#define GNI_CQ_IS_NON_BLOCKING(mode) (((mode) & (GNI_CQ_BLOCKING | GNI_CQ_EMULATED)) == 0)
#define GNI_CQ_IS_EMULATED(mode) (((mode)&GNI_CQ_EMULATED) != 0)

/* gni_post_descriptor_t.cq_mode: which events a post raises. */
#define GNI_CQMODE_SILENT 0
#define GNI_CQMODE_LOCAL_EVENT 1  /* source CQ: the source buffer may be used again */
#define GNI_CQMODE_GLOBAL_EVENT 2 /* source CQ: the target has it */
#define GNI_CQMODE_REMOTE_EVENT 4 /* the CQ of the target's registration */
#define GNI_CQMODE_DUAL_EVENTS (GNI_CQMODE_LOCAL_EVENT | GNI_CQMODE_GLOBAL_EVENT)

/* gni_post_descriptor_t.dlvr_mode: routing wishes. */
#define GNI_DLVMODE_PERFORMANCE 0x000
#define GNI_DLVMODE_NO_ADAPT 0x001
#define GNI_DLVMODE_NO_HASH 0x002
#define GNI_DLVMODE_NO_RADAPT 0x004
#define GNI_DLVMODE_IN_ORDER (GNI_DLVMODE_NO_ADAPT | GNI_DLVMODE_NO_HASH)
#define GNI_DLVMODE_MNON_HASH GNI_DLVMODE_IN_ORDER
#define GNI_DLVMODE_NMIN_HASH 0x008
#define GNI_DLVMODE_MIN_HASH 0x010
#define GNI_DLVMODE_ADAPTIVE0 GNI_DLVMODE_PERFORMANCE
#define GNI_DLVMODE_ADAPTIVE1 0x020
#define GNI_DLVMODE_ADAPTIVE2 0x040
#define GNI_DLVMODE_ADAPTIVE3 0x080
#define GNI_DLVMODE_ORDERED_TAIL 0x100

/* gni_post_descriptor_t.rdma_mode. */
#define GNI_RDMAMODE_PHYS_ADDR 1 /* privileged */
#define GNI_RDMAMODE_FENCE 2     /* later RDMA waits for this and all earlier posts */
#define GNI_RDMAMODE_GETWC_DIS 4

/* gni_post_descriptor_t.ce_mode. */
#define GNI_CEMODE_TWO_OP 0x01
#define GNI_CEMODE_FPE_OP_INVAL 0x02
#define GNI_CEMODE_FPE_OFLOW 0x04
#define GNI_CEMODE_FPE_UFLOW 0x08
#define GNI_CEMODE_FPE_PRECISION 0x10

/* Floating-point exceptions in a gni_ce_result_t. */
#define GNI_CE_FPE_OP_INVAL 0x1
#define GNI_CE_FPE_OFLOW 0x2
#define GNI_CE_FPE_UFLOW 0x4
#define GNI_CE_FPE_PRECISION 0x8

/* GNI_CeConfigure: modes. */
#define GNI_CE_MODE_ROUND_UP 0x001
#define GNI_CE_MODE_ROUND_DOWN 0x002
#define GNI_CE_MODE_ROUND_NEAR 0x004
#define GNI_CE_MODE_ROUND_ZERO 0x008
#define GNI_CE_MODE_CQE_ONCOMP 0x010
#define GNI_CE_MODE_CQE_ONERR 0x040
#define GNI_CE_MODE_RC_NMIN_HASH 0x080
#define GNI_CE_MODE_RC_MIN_HASH 0x100
#define GNI_CE_MODE_RC_MNON_HASH 0x200
#define GNI_CE_MODE_RC_ADAPT 0x400

/* Error categories of gni_error_mask_t. */
#define GNI_ERRMASK_CORRECTABLE_MEMORY 0x01
#define GNI_ERRMASK_CRITICAL 0x02
#define GNI_ERRMASK_TRANSACTION 0x04
#define GNI_ERRMASK_ADDRESS_TRANSLATION 0x08
#define GNI_ERRMASK_TRANSIENT 0x10
#define GNI_ERRMASK_INFORMATIONAL 0x20
#define GNI_ERRMASK_DIAG_ONLY 0x40
#define GNI_ERRMASK_UNKNOWN_TRANSACTION 0x80

/* GNI_SetBIConfig: modes, and flags of gni_bi_desc_t. */
#define GNI_BI_FLAG_APPLY_NOW 0x1
#define GNI_BI_FLAG_APPLY_AFTER_THROTTLE 0x2
#define GNI_BI_FLAG_USE_DEFAULT_SETTINGS 0x4
#define GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES 0x8

/* gni_job_limits_t: "leave as it is", and the bits of ntt_ctrl. */
#define GNI_JOB_INVALID_LIMIT (-1)
#define GNI_JOB_CTRL_NTT_CLEANUP 1
#define GNI_JOB_CTRL_CE0_MASK 1
#define GNI_JOB_CTRL_CE1_MASK 2
#define GNI_JOB_CTRL_CE2_MASK 4
#define GNI_JOB_CTRL_CE3_MASK 8

/* gni_msgq_attr_t.modes. */
#define GNI_MSGQ_MODE_BLOCKING 1
