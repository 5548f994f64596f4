/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* What device, job and error calls take and give. */

#include "gni_base.h"
#include "gni_limits.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gni_version_info {
  uint32_t ugni_version; /* GNI_GET_MAJOR and so on read it */
  uint32_t ugni_svn_revision;
  char ugni_build_string[80];
  uint32_t kgni_version;
  uint32_t kgni_svn_revision;
  char kgni_build_string[80];
} gni_version_info_t;

typedef struct gni_revision_info {
  uint64_t revision_instance;
  int nid;
  uint32_t user_major_revision;
  uint32_t user_minor_revision;
  uint32_t user_code_revision;
  uint32_t driver_major_revision;
  uint32_t driver_minor_revision;
  uint32_t driver_code_revision;
  uint32_t maximum_defined_capabilities;
  uint64_t capabilities[GNI_MAX_CAPABILITY_WORDS];
  uint64_t requirement[GNI_MAX_CAPABILITY_WORDS];
} gni_revision_info_t;

typedef struct gni_dev_res_desc {
  uint64_t available;
  uint64_t reserved;
  uint64_t held;
  uint64_t total;
} gni_dev_res_desc_t;

typedef struct gni_job_res_desc {
  uint64_t used;
  uint64_t limit;
} gni_job_res_desc_t;

/* Limits of a job; GNI_JOB_INVALID_LIMIT leaves one as it is. */
typedef struct gni_job_limits {
  int32_t mdd_limit;
  union {
    int32_t mrt_limit;
    struct {
      uint8_t ce_limit;
      uint8_t iommu_limit;
      uint8_t res_byte2;
      uint8_t res_byte3;
    } m;
  } a;
  union {
    int32_t gart_limit;
    int32_t dla_limit;
  } b;
  int32_t fma_limit;
  int32_t bte_limit;
  int32_t cq_limit;
  int32_t ntt_ctrl; /* GNI_JOB_CTRL_ */
  int32_t ntt_base;
  int32_t ntt_size;
} gni_job_limits_t;

/* Node translation: logical to physical node numbers. */
typedef struct gni_ntt_entry {
  uint32_t blck_addr;
  uint32_t rplc_addr;
  uint8_t rplc_size;
} gni_ntt_entry_t;

typedef struct gni_ntt_descriptor {
  uint32_t group_size;
  uint8_t granularity;
  union {
    uint32_t* table;
    gni_ntt_entry_t* table_v2;
  } u;
  uint8_t flags;
} gni_ntt_descriptor_t;

/* Balanced injection. */
typedef struct gni_bi_desc {
  uint16_t current_bw; /* per cent */
  uint16_t current_aot_bw;
  uint16_t current_norbs;
  uint16_t flags; /* GNI_BI_FLAG_ */
  uint16_t sys_def_bw;
  uint16_t sys_def_aot_bw;
  uint16_t cle_seqnum;
  uint16_t hss_seqnum;
} gni_bi_desc_t;

typedef uint8_t gni_error_mask_t; /* GNI_ERRMASK_ */

typedef struct gni_error_event {
  uint16_t error_code;
  uint8_t error_category; /* GNI_ERRMASK_ */
  uint8_t ptag;
  uint32_t serial_number;
  uint64_t timestamp;
  uint64_t info_mmrs[4];
} gni_error_event_t;

#ifdef __cplusplus
}
#endif
