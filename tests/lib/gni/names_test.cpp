// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/status.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace orrery::gni {
namespace {

TEST(GniReturn, IsSuccessForOkAlone) {
  EXPECT_EQ(return_of(Errc::ok), GNI_RC_SUCCESS);
  for (int code = 1; code < kErrcCount; ++code)
    EXPECT_NE(return_of(static_cast<Errc>(code)), GNI_RC_SUCCESS) << code;
  EXPECT_EQ(return_of(static_cast<Errc>(255)), GNI_RC_TRANSACTION_ERROR);
}

TEST(GniReturn, TellsBackPressureFromErrors) {
  EXPECT_EQ(return_of(Errc::not_done), GNI_RC_NOT_DONE);
  EXPECT_EQ(return_of(Errc::no_resource), GNI_RC_ERROR_RESOURCE);
  EXPECT_EQ(return_of(Errc::alignment), GNI_RC_ALIGNMENT_ERROR);
  EXPECT_EQ(return_of(Errc::bounds), GNI_RC_INVALID_PARAM);
}

TEST(GniErrStr, NamesEveryReturnCodeByItsEnumerator) {
  std::set<std::string> seen;
  for (int code = GNI_RC_SUCCESS; code <= GNI_RC_ERROR_NOMEM; ++code) seen.insert(gni_err_str[code]);
  EXPECT_EQ(seen.size(), 14u);
  EXPECT_STREQ(gni_err_str[GNI_RC_SUCCESS], "GNI_RC_SUCCESS");
  EXPECT_STREQ(gni_err_str[GNI_RC_TRANSACTION_ERROR], "GNI_RC_TRANSACTION_ERROR");
  EXPECT_STREQ(gni_err_str[GNI_RC_ERROR_NOMEM], "GNI_RC_ERROR_NOMEM");
}

TEST(GniStatisticStr, NamesEveryStatistic) {
  std::set<std::string> seen;
  for (int stat = 0; stat < GNI_STAT_NUM_STATS; ++stat) seen.insert(gni_statistic_str[stat]);
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(GNI_STAT_NUM_STATS));
  EXPECT_STREQ(gni_statistic_str[GNI_STAT_SMSG_RETRANS_STALL], "SMSG_RETRANS_STALL");
  EXPECT_STREQ(gni_statistic_str[GNI_STAT_MR_MULTI_PAGESIZE], "MR_MULTI_PAGESIZE");
}

TEST(GniResourceNames, CoverEveryResourceAndRefuseTheRest) {
  for (int value = -1; value <= 20; ++value) {
    const bool device = value > GNI_DEV_RES_FIRST && value < GNI_DEV_RES_LAST;
    const bool job = value > GNI_JOB_RES_FIRST && value < GNI_JOB_RES_LAST;
    const auto device_res = static_cast<gni_dev_res_t>(value);
    const auto job_res = static_cast<gni_job_res_t>(value);
    EXPECT_EQ(gni_dev_res_valid(device_res) != 0, device) << value;
    EXPECT_EQ(std::string(gni_dev_res_to_str(device_res)) != "unknown", device) << value;
    EXPECT_EQ(gni_job_res_valid(job_res) != 0, job) << value;
    EXPECT_EQ(std::string(gni_job_res_to_str(job_res)) != "unknown", job) << value;
  }
  EXPECT_STREQ(gni_dev_res_to_str(GNI_DEV_RES_VMDH), "vmdh");
  EXPECT_STREQ(gni_job_res_to_str(GNI_JOB_RES_NONVMDH), "nonvmdh");
  EXPECT_TRUE(gni_dev_orb_mmr_valid(GNI_DEV_ORB_MMR_TIMEOUT));
  EXPECT_FALSE(gni_dev_orb_mmr_valid(GNI_DEV_ORB_MMR_LAST));
  EXPECT_STREQ(gni_dev_orb_mmr_to_str(GNI_DEV_ORB_MMR_TIMEOUT), "timeout");
}

TEST(GniVersion, IsTheHeadersAndSaysWhoseBuildItIs) {
  std::uint32_t version = 0;
  EXPECT_EQ(GNI_GetVersion(&version), GNI_RC_SUCCESS);
  EXPECT_EQ(version, static_cast<std::uint32_t>(GNI_VERSION));
  gni_version_info_t info;
  EXPECT_EQ(GNI_GetVersionInformation(&info), GNI_RC_SUCCESS);
  EXPECT_GE(GNI_GET_MINOR(info.ugni_version), static_cast<std::uint32_t>(GNI_MINOR_REV));
  EXPECT_EQ(info.kgni_version, info.ugni_version);
  EXPECT_EQ(std::string(info.ugni_build_string).rfind("orrery ", 0), 0u);
  EXPECT_EQ(GNI_GetVersion(nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetVersionInformation(nullptr), GNI_RC_INVALID_PARAM);
}

}  // namespace
}  // namespace orrery::gni
