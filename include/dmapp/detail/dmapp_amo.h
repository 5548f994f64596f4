/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "dmapp_types.h"

/*
 * Atomic memory operations on aligned words of another PE's memory. Atomic against every other AMO on the
 * word, of any PE and of any interface, and against atomic instructions of the word's owner. Errors: as puts
 * and gets, and ALIGNMENT_ERROR.
 */

#ifdef __cplusplus
extern "C" {
#endif

/* Without result. */
dmapp_return_t dmapp_aadd_qw(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                             int64_t operand);
dmapp_return_t dmapp_aadd_qw_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                int64_t operand, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_aadd_qw_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                 int64_t operand);

dmapp_return_t dmapp_aand_qw(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                             int64_t operand);
dmapp_return_t dmapp_aand_qw_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                int64_t operand, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_aand_qw_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                 int64_t operand);

dmapp_return_t dmapp_aor_qw(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                            int64_t operand);
dmapp_return_t dmapp_aor_qw_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                               int64_t operand, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_aor_qw_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                int64_t operand);

dmapp_return_t dmapp_axor_qw(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                             int64_t operand);
dmapp_return_t dmapp_axor_qw_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                int64_t operand, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_axor_qw_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                 int64_t operand);

/* With result: target_addr gets the old value. */
dmapp_return_t dmapp_afadd_qw(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                              dmapp_pe_t source_pe, int64_t operand);
dmapp_return_t dmapp_afadd_qw_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                 dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_afadd_qw_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                  dmapp_pe_t source_pe, int64_t operand);

dmapp_return_t dmapp_afand_qw(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                              dmapp_pe_t source_pe, int64_t operand);
dmapp_return_t dmapp_afand_qw_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                 dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_afand_qw_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                  dmapp_pe_t source_pe, int64_t operand);

dmapp_return_t dmapp_afor_qw(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                             dmapp_pe_t source_pe, int64_t operand);
dmapp_return_t dmapp_afor_qw_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_afor_qw_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                 dmapp_pe_t source_pe, int64_t operand);

dmapp_return_t dmapp_afxor_qw(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                              dmapp_pe_t source_pe, int64_t operand);
dmapp_return_t dmapp_afxor_qw_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                 dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_afxor_qw_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                  dmapp_pe_t source_pe, int64_t operand);

/* (old & andMask) ^ xorMask; with andMask 0 a swap. */
dmapp_return_t dmapp_afax_qw(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                             dmapp_pe_t source_pe, int64_t andMask, int64_t xorMask);
dmapp_return_t dmapp_afax_qw_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                dmapp_pe_t source_pe, int64_t andMask, int64_t xorMask,
                                dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_afax_qw_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                 dmapp_pe_t source_pe, int64_t andMask, int64_t xorMask);

/* swaperand where old equals comperand, else old. */
dmapp_return_t dmapp_acswap_qw(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                               dmapp_pe_t source_pe, int64_t comperand, int64_t swaperand);
dmapp_return_t dmapp_acswap_qw_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                  dmapp_pe_t source_pe, int64_t comperand, int64_t swaperand,
                                  dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_acswap_qw_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                   dmapp_pe_t source_pe, int64_t comperand, int64_t swaperand);

/* Operations of the newer device, on 4- or 8-byte words. The operand has the word's type in its low bytes. */
typedef enum dmapp_amo_op {
  DMAPP_AMO_ADD = 1,
  DMAPP_AMO_AND,
  DMAPP_AMO_OR,
  DMAPP_AMO_XOR,
  DMAPP_AMO_AX,    /* (old & operand1) ^ operand2 */
  DMAPP_AMO_CSWAP, /* operand2 where old equals operand1 */
  DMAPP_AMO_SWAP,
  DMAPP_AMO_MIN, /* of signed integers */
  DMAPP_AMO_MAX,
  DMAPP_AMO_FPADD, /* of float or double */
  DMAPP_AMO_FPMIN,
  DMAPP_AMO_FPMAX
} dmapp_amo_op_t;

typedef struct dmapp_amo {
  dmapp_amo_op_t op;
  dmapp_type_t type; /* DMAPP_DW or DMAPP_QW */
  uint64_t operand1;
  uint64_t operand2;
} dmapp_amo_t;

/* Without result. */
dmapp_return_t dmapp_amo_put(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                             dmapp_amo_t* amo);
dmapp_return_t dmapp_amo_put_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                dmapp_amo_t* amo, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_amo_put_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                 dmapp_amo_t* amo);

/* With result: target_addr gets the old value, 4 or 8 bytes. */
dmapp_return_t dmapp_amo_get(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                             dmapp_pe_t source_pe, dmapp_amo_t* amo);
dmapp_return_t dmapp_amo_get_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                dmapp_pe_t source_pe, dmapp_amo_t* amo, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_amo_get_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                 dmapp_pe_t source_pe, dmapp_amo_t* amo);

/* Returns when every AMO of the calling thread to target_pe is complete. flags: 0. */
dmapp_return_t dmapp_amo_flush(dmapp_pe_t target_pe, uint64_t flags);

#ifdef __cplusplus
}
#endif
