// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/job.hpp"
#include "lib/gni/status.hpp"

#include "include/gni/gni_pub.h"

// What a library and its driver can do, for two of them that want to know whether they fit.
namespace orrery::gni {

namespace {

// The way in which a gni_revision_info_t is to be read.
constexpr std::uint64_t kInstance = 1;

// One bit each; a set requirement is a capability that the partner must have. The numbers are ours.
enum Capability : std::uint32_t {
  kOneSided = 0,           // FMA and BTE transfers, AMOs, events
  kDatagrams = 1,          // exchanges by GNI_EpPostData
  kShortMessages = 2,      // mailboxes
  kChains = 3,             // GNI_CtPostFma, GNI_CtPostCqWrite
  kCollectives = 4,        // the collective engine
  kSharedQueues = 5,       // GNI_Msgq calls
  kDestinationQueues = 6,  // GNI_Dqueue calls
  kCapabilities = 7,
};

constexpr std::uint32_t kMostCapabilities = GNI_MAX_CAPABILITY_WORDS * 64;

bool well_formed(const gni_revision_info_t& info) {
  return info.revision_instance != 0 && info.maximum_defined_capabilities <= kMostCapabilities;
}

// Whether `partner` has all that `info` requires.
bool is_met(const gni_revision_info_t& info, const gni_revision_info_t& partner) {
  for (int word = 0; word < GNI_MAX_CAPABILITY_WORDS; ++word) {
    if ((info.requirement[word] & ~partner.capabilities[word]) != 0) return false;
  }
  return true;
}

}  // namespace

}  // namespace orrery::gni

extern "C" {

gni_return_t GNI_GetCapabilities(gni_revision_info_t* revision_info) {
  if (revision_info == nullptr) return GNI_RC_INVALID_PARAM;
  const auto job = orrery::job::Job::of_process();
  if (!job.ok()) return orrery::gni::return_of(job.code());
  gni_revision_info_t info{};
  info.revision_instance = orrery::gni::kInstance;
  info.nid = static_cast<int>(job.value()->nid());
  info.user_major_revision = GNI_MAJOR_REV;
  info.user_minor_revision = GNI_MINOR_REV;
  info.user_code_revision = GNI_CODE_REV;
  info.driver_major_revision = GNI_MAJOR_REV;
  info.driver_minor_revision = GNI_MINOR_REV;
  info.driver_code_revision = GNI_CODE_REV;
  info.maximum_defined_capabilities = orrery::gni::kCapabilities;
  info.capabilities[0] = (std::uint64_t{1} << orrery::gni::kCapabilities) - 1;
  info.requirement[0] = std::uint64_t{1} << orrery::gni::kOneSided;
  *revision_info = info;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_ValidateCapabilities(gni_revision_info_t first_revision_info,
                                      gni_revision_info_t second_revision_info) {
  const gni_revision_info_t& first = first_revision_info;
  const gni_revision_info_t& second = second_revision_info;
  if (!orrery::gni::well_formed(first) || !orrery::gni::well_formed(second)) return GNI_RC_INVALID_PARAM;
  const bool fit = first.revision_instance == second.revision_instance &&
                   orrery::gni::is_met(first, second) && orrery::gni::is_met(second, first);
  return fit ? GNI_RC_SUCCESS : GNI_RC_NO_MATCH;
}

}  // extern "C"
