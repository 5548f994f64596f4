/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/*
 * Collective engine commands. The least significant bit set: 64-bit operands; clear (_S): 32-bit operands.
 * _LIDX and _GIDX carry an index with the value, in the second operand.
 */

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gni_ce_cmd_type {
  GNI_FMA_CE_AND_S = 0x00,
  GNI_FMA_CE_AND = 0x01,
  GNI_FMA_CE_OR_S = 0x02,
  GNI_FMA_CE_OR = 0x03,
  GNI_FMA_CE_XOR_S = 0x04,
  GNI_FMA_CE_XOR = 0x05,
  GNI_FMA_CE_IMIN_LIDX_S = 0x10,
  GNI_FMA_CE_IMIN_LIDX = 0x11,
  GNI_FMA_CE_IMAX_LIDX_S = 0x12,
  GNI_FMA_CE_IMAX_LIDX = 0x13,
  GNI_FMA_CE_IADD_S = 0x14,
  GNI_FMA_CE_IADD = 0x15,
  GNI_FMA_CE_FPMIN_LIDX_S = 0x18,
  GNI_FMA_CE_FPMIN_LIDX = 0x19,
  GNI_FMA_CE_FPMAX_LIDX_S = 0x1a,
  GNI_FMA_CE_FPMAX_LIDX = 0x1b,
  GNI_FMA_CE_FPADD_S = 0x1c,
  GNI_FMA_CE_FPADD = 0x1d,
  GNI_FMA_CE_IMIN_GIDX_S = 0x30,
  GNI_FMA_CE_IMIN_GIDX = 0x31,
  GNI_FMA_CE_IMAX_GIDX_S = 0x32,
  GNI_FMA_CE_IMAX_GIDX = 0x33,
  GNI_FMA_CE_FPMIN_GIDX_S = 0x38,
  GNI_FMA_CE_FPMIN_GIDX = 0x39,
  GNI_FMA_CE_FPMAX_GIDX_S = 0x3a,
  GNI_FMA_CE_FPMAX_GIDX = 0x3b
} gni_ce_cmd_type_t;

#ifdef __cplusplus
}
#endif
