/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

#include "dmapp_types.h"

/*
 * Puts and gets. Elements are of `type`; 0 of them is a call that does nothing. Lists are read before the
 * call returns.
 *
 * Errors of all of them: INVALID_PARAM (a null pointer, a type that is none, a PE that is none, a descriptor
 * that is none), NOT_FOUND (bytes outside the segment), PERMISSION_ERROR (memory that its owner registered as
 * read-only), TRANSACTION_ERROR (the PE died, or the descriptor's memory is not registered any more). What a
 * call could not know when it returned is said by the wait or test that completes it.
 */

#ifdef __cplusplus
extern "C" {
#endif

/* nelems elements from source_addr to target_addr of target_pe. */
dmapp_return_t dmapp_put(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                         void* source_addr, uint64_t nelems, dmapp_type_t type);
dmapp_return_t dmapp_put_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                            void* source_addr, uint64_t nelems, dmapp_type_t type,
                            dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_put_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                             void* source_addr, uint64_t nelems, dmapp_type_t type);

/* nelems elements from source_addr of source_pe to target_addr. */
dmapp_return_t dmapp_get(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                         dmapp_pe_t source_pe, uint64_t nelems, dmapp_type_t type);
dmapp_return_t dmapp_get_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                            dmapp_pe_t source_pe, uint64_t nelems, dmapp_type_t type,
                            dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_get_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                             dmapp_pe_t source_pe, uint64_t nelems, dmapp_type_t type);

/* A put; when its data are visible, the aligned 8-byte word target_flag, in the same segment of the same PE,
 * gets flag_value. ALIGNMENT_ERROR: the flag's. */
dmapp_return_t dmapp_put_flag(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                              void* source_addr, uint64_t nelems, dmapp_type_t type, void* target_flag,
                              uint64_t flag_value);
dmapp_return_t dmapp_put_flag_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                 void* source_addr, uint64_t nelems, dmapp_type_t type, void* target_flag,
                                 uint64_t flag_value, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_put_flag_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                  void* source_addr, uint64_t nelems, dmapp_type_t type, void* target_flag,
                                  uint64_t flag_value);

/* A get like dmapp_get_nbi. */
dmapp_return_t dmapp_get_flag_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                  dmapp_pe_t source_pe, uint64_t nelems, dmapp_type_t type);

/* Strided: element i from source_addr[i * sst] to target_addr[i * tst], strides in elements, negative ones
 * too. */
dmapp_return_t dmapp_iput(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                          void* source_addr, ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems,
                          dmapp_type_t type);
dmapp_return_t dmapp_iput_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                             void* source_addr, ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems,
                             dmapp_type_t type, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_iput_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                              void* source_addr, ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems,
                              dmapp_type_t type);

/* Strided: element i from source_addr[i * sst] to target_addr[i * tst]. */
dmapp_return_t dmapp_iget(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                          dmapp_pe_t source_pe, ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems,
                          dmapp_type_t type);
dmapp_return_t dmapp_iget_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                             dmapp_pe_t source_pe, ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems,
                             dmapp_type_t type, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_iget_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                              dmapp_pe_t source_pe, ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems,
                              dmapp_type_t type);

/* Indexed: element i from source_addr[i] to target_addr[tidx[i]]. */
dmapp_return_t dmapp_ixput(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                           void* source_addr, ptrdiff_t* tidx, uint64_t nelems, dmapp_type_t type);
dmapp_return_t dmapp_ixput_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                              void* source_addr, ptrdiff_t* tidx, uint64_t nelems, dmapp_type_t type,
                              dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_ixput_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                               void* source_addr, ptrdiff_t* tidx, uint64_t nelems, dmapp_type_t type);

/* Indexed: element i from source_addr[sidx[i]] to target_addr[i]. */
dmapp_return_t dmapp_ixget(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                           dmapp_pe_t source_pe, ptrdiff_t* sidx, uint64_t nelems, dmapp_type_t type);
dmapp_return_t dmapp_ixget_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                              dmapp_pe_t source_pe, ptrdiff_t* sidx, uint64_t nelems, dmapp_type_t type,
                              dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_ixget_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                               dmapp_pe_t source_pe, ptrdiff_t* sidx, uint64_t nelems, dmapp_type_t type);

/* The same nelems elements to the same symmetric address of every PE of the list. */
dmapp_return_t dmapp_put_ixpe(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t* target_pe_list,
                              uint32_t num_target_pes, void* source_addr, uint64_t nelems, dmapp_type_t type);
dmapp_return_t dmapp_put_ixpe_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t* target_pe_list,
                                 uint32_t num_target_pes, void* source_addr, uint64_t nelems,
                                 dmapp_type_t type, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_put_ixpe_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t* target_pe_list,
                                  uint32_t num_target_pes, void* source_addr, uint64_t nelems,
                                  dmapp_type_t type);

/* Block i of nelems elements to the PE at place i of the list, to the same symmetric address in each. */
dmapp_return_t dmapp_scatter_ixpe(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t* target_pe_list,
                                  uint32_t num_target_pes, void* source_addr, uint64_t nelems,
                                  dmapp_type_t type);
dmapp_return_t dmapp_scatter_ixpe_nb(void* target_addr, dmapp_seg_desc_t* target_seg,
                                     dmapp_pe_t* target_pe_list, uint32_t num_target_pes, void* source_addr,
                                     uint64_t nelems, dmapp_type_t type, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_scatter_ixpe_nbi(void* target_addr, dmapp_seg_desc_t* target_seg,
                                      dmapp_pe_t* target_pe_list, uint32_t num_target_pes, void* source_addr,
                                      uint64_t nelems, dmapp_type_t type);

/* nelems elements of the same symmetric address of every PE of the list: those of place i become block i. */
dmapp_return_t dmapp_gather_ixpe(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                 dmapp_pe_t* source_pe_list, uint32_t num_source_pes, uint64_t nelems,
                                 dmapp_type_t type);
dmapp_return_t dmapp_gather_ixpe_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                    dmapp_pe_t* source_pe_list, uint32_t num_source_pes, uint64_t nelems,
                                    dmapp_type_t type, dmapp_syncid_handle_t* syncid);
dmapp_return_t dmapp_gather_ixpe_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                     dmapp_pe_t* source_pe_list, uint32_t num_source_pes, uint64_t nelems,
                                     dmapp_type_t type);

#ifdef __cplusplus
}
#endif
