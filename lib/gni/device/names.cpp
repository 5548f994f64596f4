// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "include/gni/gni_pub.h"
#include "lib/gni/raw_value.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

// The texts that the library exports.
namespace {

using orrery::gni::raw_value;

constexpr std::array<const char*, GNI_DEV_RES_LAST> kDevRes{"",   "mdd", "mrt", "cq",  "fma",
                                                            "ce", "dla", "tcr", "dva", "vmdh"};
constexpr std::array<const char*, GNI_JOB_RES_LAST> kJobRes{"",     "mdd",    "mrt",       "iommu",  "gart",
                                                            "cq",   "fma",    "rdma",      "ce",     "dla",
                                                            "sfma", "direct", "pci_iommu", "nonvmdh"};
constexpr std::array<const char*, GNI_DEV_ORB_MMR_LAST> kOrbMmr{"", "timeout"};

// Enumerations of resources run from FIRST (0, itself none) to LAST (none either). The value comes from a
// client and may be anything.
template <std::size_t kCount>
bool names(const std::array<const char*, kCount>&, std::uint32_t value) {
  return value > 0 && value < kCount;
}
template <std::size_t kCount>
const char* text(const std::array<const char*, kCount>& table, std::uint32_t value) {
  return names(table, value) ? table[value] : "unknown";
}

}  // namespace

extern "C" {

const char* gni_err_str[] = {
    "GNI_RC_SUCCESS",       "GNI_RC_NOT_DONE",         "GNI_RC_INVALID_PARAM",    "GNI_RC_ERROR_RESOURCE",
    "GNI_RC_TIMEOUT",       "GNI_RC_PERMISSION_ERROR", "GNI_RC_DESCRIPTOR_ERROR", "GNI_RC_ALIGNMENT_ERROR",
    "GNI_RC_INVALID_STATE", "GNI_RC_NO_MATCH",         "GNI_RC_SIZE_ERROR",       "GNI_RC_TRANSACTION_ERROR",
    "GNI_RC_ILLEGAL_OP",    "GNI_RC_ERROR_NOMEM",
};
static_assert(std::size(gni_err_str) == GNI_RC_ERROR_NOMEM + 1);

const char* gni_statistic_str[] = {
    "SMSG_BUFF_CREDITS_STALL",
    "SMSG_DLA_STALL",
    "SMSG_MBOX_CREDITS_STALL",
    "SMSG_REQ_STALL",
    "SMSG_RETRANS_COUNT",
    "SMSG_RETRANS_DLA_COUNT",
    "SMSG_RETRANS_STALL",
    "MR_MULTI_PAGESIZE",
    // Beyond GNI_STAT_NUM_STATS of our own flags: for clients that number by the Aries-only block.
    "DLA_ALLOC_STATUS_TIMEOUT",
    "DLA_BLOCK_ORPHANED",
    "DLA_BLOCK_RETRANS_COUNT",
    "DLA_FREE_BLOCKS_STALL",
    "DLA_FREE_FMAD_BLOCKS_STALL",
    "DLA_HIGH_RETRANS_COUNT",
    "DLA_OVERFLOW_RESEND",
    "DLA_RETRANS_COUNT",
    "DLA_TOTAL_RETRANS_COUNT",
    "FLBTE_TXD_CORRUPT",
    "FLBTE_TXD_NONE",
    "FMA_LAUNCH_COUNT",
    "MR_MULTI_PAGESIZE",
};
static_assert(std::size(gni_statistic_str) == 21);

int gni_dev_res_valid(gni_dev_res_t res_type) { return names(kDevRes, raw_value(res_type)); }
const char* gni_dev_res_to_str(gni_dev_res_t res_type) { return text(kDevRes, raw_value(res_type)); }
int gni_job_res_valid(gni_job_res_t res_type) { return names(kJobRes, raw_value(res_type)); }
const char* gni_job_res_to_str(gni_job_res_t res_type) { return text(kJobRes, raw_value(res_type)); }
int gni_dev_orb_mmr_valid(gni_dev_orb_mmr_t orb_mmr_type) { return names(kOrbMmr, raw_value(orb_mmr_type)); }
const char* gni_dev_orb_mmr_to_str(gni_dev_orb_mmr_t orb_mmr_type) {
  return text(kOrbMmr, raw_value(orb_mmr_type));
}

}  // extern "C"
