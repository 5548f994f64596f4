/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */

/*
 * The layout of every structure of the interface on x86-64, compiled as C11 and, through layout_cxx.cpp, as
 * C++. Nothing runs: compiling is the test. Offsets are typed from the interface facts, not from the header.
 */
#include <gni_pub.h>

#include <stddef.h>

#ifdef __cplusplus
#define CHECK_LAYOUT(condition, text) static_assert(condition, text)
#else
#define CHECK_LAYOUT(condition, text) _Static_assert(condition, text)
#endif
#define AT(type, member, offset) CHECK_LAYOUT(offsetof(type, member) == (offset), #type "." #member)
#define SIZE(type, bytes) CHECK_LAYOUT(sizeof(type) == (bytes), #type)
#define MEMBER_SIZE(type, member, bytes) \
  CHECK_LAYOUT(sizeof(((type*)0)->member) == (bytes), #type "." #member)

SIZE(gni_mem_handle_t, 16);
AT(gni_mem_handle_t, qword1, 0);
AT(gni_mem_handle_t, qword2, 8);
SIZE(gni_cq_entry_t, 8);
SIZE(gni_cq_mode_t, 4);
SIZE(gni_error_mask_t, 1);
SIZE(gni_return_t, 4);

SIZE(gni_post_descriptor_t, 184);
AT(gni_post_descriptor_t, next_descr, 0);
AT(gni_post_descriptor_t, prev_descr, 8);
AT(gni_post_descriptor_t, post_id, 16);
AT(gni_post_descriptor_t, status, 24);
AT(gni_post_descriptor_t, cq_mode_complete, 32);
AT(gni_post_descriptor_t, type, 36);
AT(gni_post_descriptor_t, cq_mode, 40);
AT(gni_post_descriptor_t, dlvr_mode, 42);
AT(gni_post_descriptor_t, local_addr, 48);
AT(gni_post_descriptor_t, local_mem_hndl, 56);
AT(gni_post_descriptor_t, remote_addr, 72);
AT(gni_post_descriptor_t, remote_mem_hndl, 80);
AT(gni_post_descriptor_t, length, 96);
AT(gni_post_descriptor_t, rdma_mode, 104);
AT(gni_post_descriptor_t, src_cq_hndl, 112);
AT(gni_post_descriptor_t, sync_flag_value, 120);
AT(gni_post_descriptor_t, sync_flag_addr, 128);
AT(gni_post_descriptor_t, amo_cmd, 136);
AT(gni_post_descriptor_t, first_operand, 144);
AT(gni_post_descriptor_t, second_operand, 152);
AT(gni_post_descriptor_t, cqwrite_value, 160);
AT(gni_post_descriptor_t, ce_cmd, 168);
AT(gni_post_descriptor_t, ce_mode, 172);
AT(gni_post_descriptor_t, ce_red_id, 176);
MEMBER_SIZE(gni_post_descriptor_t, cq_mode_complete, 2);
MEMBER_SIZE(gni_post_descriptor_t, type, 4);
MEMBER_SIZE(gni_post_descriptor_t, cq_mode, 2);
MEMBER_SIZE(gni_post_descriptor_t, dlvr_mode, 2);
MEMBER_SIZE(gni_post_descriptor_t, rdma_mode, 2);
MEMBER_SIZE(gni_post_descriptor_t, ce_mode, 4);

SIZE(gni_smsg_attr_t, 56);
AT(gni_smsg_attr_t, msg_type, 0);
AT(gni_smsg_attr_t, msg_buffer, 8);
AT(gni_smsg_attr_t, buff_size, 16);
AT(gni_smsg_attr_t, mem_hndl, 24);
AT(gni_smsg_attr_t, mbox_offset, 40);
AT(gni_smsg_attr_t, mbox_maxcredit, 44);
AT(gni_smsg_attr_t, msg_maxsize, 48);

SIZE(gni_mem_segment_t, 16);
AT(gni_mem_segment_t, address, 0);
AT(gni_mem_segment_t, length, 8);

SIZE(gni_ce_result_t, 24);
AT(gni_ce_result_t, control, 0);
AT(gni_ce_result_t, result1, 8);
AT(gni_ce_result_t, result2, 16);

SIZE(gni_ct_put_post_descriptor_t, 56);
AT(gni_ct_put_post_descriptor_t, next_descr, 0);
AT(gni_ct_put_post_descriptor_t, ep_hndl, 8);
AT(gni_ct_put_post_descriptor_t, length, 16);
AT(gni_ct_put_post_descriptor_t, remote_addr, 24);
AT(gni_ct_put_post_descriptor_t, remote_mem_hndl, 32);
AT(gni_ct_put_post_descriptor_t, local_addr, 48);
SIZE(gni_ct_get_post_descriptor_t, 72);
AT(gni_ct_get_post_descriptor_t, local_addr, 48);
AT(gni_ct_get_post_descriptor_t, local_mem_hndl, 56);
SIZE(gni_ct_amo_post_descriptor_t, 96);
AT(gni_ct_amo_post_descriptor_t, local_mem_hndl, 56);
AT(gni_ct_amo_post_descriptor_t, amo_cmd, 72);
AT(gni_ct_amo_post_descriptor_t, first_operand, 80);
AT(gni_ct_amo_post_descriptor_t, second_operand, 88);
SIZE(gni_ct_cqw_post_descriptor_t, 40);
AT(gni_ct_cqw_post_descriptor_t, next_descr, 0);
AT(gni_ct_cqw_post_descriptor_t, ep_hndl, 8);
AT(gni_ct_cqw_post_descriptor_t, remote_mem_hndl, 16);
AT(gni_ct_cqw_post_descriptor_t, cqwrite_value, 32);
SIZE(gni_ct_uni_post_descriptor_t, 96);
AT(gni_ct_uni_post_descriptor_t, u.put, 0);
AT(gni_ct_uni_post_descriptor_t, u.get, 0);
AT(gni_ct_uni_post_descriptor_t, u.amo, 0);
AT(gni_ct_uni_post_descriptor_t, u.cqw, 0);

SIZE(gni_error_event_t, 48);
AT(gni_error_event_t, error_code, 0);
AT(gni_error_event_t, error_category, 2);
AT(gni_error_event_t, ptag, 3);
AT(gni_error_event_t, serial_number, 4);
AT(gni_error_event_t, timestamp, 8);
AT(gni_error_event_t, info_mmrs, 16);

SIZE(gni_job_limits_t, 36);
AT(gni_job_limits_t, mdd_limit, 0);
AT(gni_job_limits_t, a.mrt_limit, 4);
AT(gni_job_limits_t, a.m.ce_limit, 4);
AT(gni_job_limits_t, a.m.iommu_limit, 5);
AT(gni_job_limits_t, a.m.res_byte2, 6);
AT(gni_job_limits_t, a.m.res_byte3, 7);
AT(gni_job_limits_t, b.gart_limit, 8);
AT(gni_job_limits_t, b.dla_limit, 8);
AT(gni_job_limits_t, fma_limit, 12);
AT(gni_job_limits_t, bte_limit, 16);
AT(gni_job_limits_t, cq_limit, 20);
AT(gni_job_limits_t, ntt_ctrl, 24);
AT(gni_job_limits_t, ntt_base, 28);
AT(gni_job_limits_t, ntt_size, 32);

SIZE(gni_dev_res_desc_t, 32);
AT(gni_dev_res_desc_t, available, 0);
AT(gni_dev_res_desc_t, reserved, 8);
AT(gni_dev_res_desc_t, held, 16);
AT(gni_dev_res_desc_t, total, 24);
SIZE(gni_job_res_desc_t, 16);
AT(gni_job_res_desc_t, used, 0);
AT(gni_job_res_desc_t, limit, 8);

SIZE(gni_ntt_descriptor_t, 24);
AT(gni_ntt_descriptor_t, group_size, 0);
AT(gni_ntt_descriptor_t, granularity, 4);
AT(gni_ntt_descriptor_t, u.table, 8);
AT(gni_ntt_descriptor_t, u.table_v2, 8);
AT(gni_ntt_descriptor_t, flags, 16);
SIZE(gni_ntt_entry_t, 12);
AT(gni_ntt_entry_t, blck_addr, 0);
AT(gni_ntt_entry_t, rplc_addr, 4);
AT(gni_ntt_entry_t, rplc_size, 8);

SIZE(gni_version_info_t, 176);
AT(gni_version_info_t, ugni_version, 0);
AT(gni_version_info_t, ugni_svn_revision, 4);
AT(gni_version_info_t, ugni_build_string, 8);
AT(gni_version_info_t, kgni_version, 88);
AT(gni_version_info_t, kgni_svn_revision, 92);
AT(gni_version_info_t, kgni_build_string, 96);

SIZE(gni_bi_desc_t, 16);
AT(gni_bi_desc_t, current_bw, 0);
AT(gni_bi_desc_t, current_aot_bw, 2);
AT(gni_bi_desc_t, current_norbs, 4);
AT(gni_bi_desc_t, flags, 6);
AT(gni_bi_desc_t, sys_def_bw, 8);
AT(gni_bi_desc_t, sys_def_aot_bw, 10);
AT(gni_bi_desc_t, cle_seqnum, 12);
AT(gni_bi_desc_t, hss_seqnum, 14);

SIZE(gni_msgq_attr_t, 28);
AT(gni_msgq_attr_t, max_msg_sz, 0);
AT(gni_msgq_attr_t, smsg_q_sz, 4);
AT(gni_msgq_attr_t, rcv_pool_sz, 8);
AT(gni_msgq_attr_t, num_msgq_eps, 12);
AT(gni_msgq_attr_t, nloc_insts, 16);
AT(gni_msgq_attr_t, modes, 20);
AT(gni_msgq_attr_t, rcv_cq_sz, 24);
SIZE(gni_msgq_rem_inst_t, 32);
AT(gni_msgq_rem_inst_t, id, 0);
AT(gni_msgq_rem_inst_t, mdh, 8);
AT(gni_msgq_rem_inst_t, mdh_off, 24);
SIZE(gni_msgq_ep_attr_t, 16 + 32 * 128);
AT(gni_msgq_ep_attr_t, pe_addr, 0);
AT(gni_msgq_ep_attr_t, max_msg_sz, 4);
AT(gni_msgq_ep_attr_t, smsg_q_sz, 8);
AT(gni_msgq_ep_attr_t, num_insts, 12);
AT(gni_msgq_ep_attr_t, insts, 16);

SIZE(gni_dqueue_in_attr_t, 40);
AT(gni_dqueue_in_attr_t, entries, 0);
AT(gni_dqueue_in_attr_t, msg_size, 4);
AT(gni_dqueue_in_attr_t, flags, 8);
AT(gni_dqueue_in_attr_t, npeers, 16);
AT(gni_dqueue_in_attr_t, cb, 24);
AT(gni_dqueue_in_attr_t, context, 32);
SIZE(gni_dqueue_out_attr_t, 32);
AT(gni_dqueue_out_attr_t, pe, 0);
AT(gni_dqueue_out_attr_t, id, 4);
AT(gni_dqueue_out_attr_t, mdh, 8);
AT(gni_dqueue_out_attr_t, entries, 24);
AT(gni_dqueue_out_attr_t, msg_size, 28);

SIZE(gni_revision_info_t, 136);
AT(gni_revision_info_t, revision_instance, 0);
AT(gni_revision_info_t, nid, 8);
AT(gni_revision_info_t, user_major_revision, 12);
AT(gni_revision_info_t, user_minor_revision, 16);
AT(gni_revision_info_t, user_code_revision, 20);
AT(gni_revision_info_t, driver_major_revision, 24);
AT(gni_revision_info_t, driver_minor_revision, 28);
AT(gni_revision_info_t, driver_code_revision, 32);
AT(gni_revision_info_t, maximum_defined_capabilities, 36);
AT(gni_revision_info_t, capabilities, 40);
AT(gni_revision_info_t, requirement, 88);

/* Clients test these with #ifdef. */
#ifndef GNI_CQ_GET_REM_INST_ID
#error "GNI_CQ_GET_REM_INST_ID must be a macro"
#endif
#ifndef GNI_FIND_ALLOC_PTAG
#error "GNI_FIND_ALLOC_PTAG must be a macro"
#endif
#ifndef GNI_CDM_MODE_FMA_DEDICATED
#error "GNI_CDM_MODE_FMA_DEDICATED must be a macro"
#endif
#ifdef CRAY_CONFIG_GHAL_ARIES
#error "the header must not define CRAY_CONFIG_GHAL_ARIES"
#endif
