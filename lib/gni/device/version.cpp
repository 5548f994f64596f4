// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "include/gni/gni_pub.h"

#include <cstdio>

extern "C" {

gni_return_t GNI_GetVersion(uint32_t* version) {
  if (version == nullptr) return GNI_RC_INVALID_PARAM;
  *version = GNI_VERSION;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetVersionInformation(gni_version_info_t* version_info) {
  if (version_info == nullptr) return GNI_RC_INVALID_PARAM;
  *version_info = {};
  version_info->ugni_version = GNI_VERSION;
  // The emulated device needs no driver of its own: library and "driver" are one build.
  version_info->kgni_version = GNI_VERSION;
  std::snprintf(version_info->ugni_build_string, sizeof version_info->ugni_build_string, "orrery %s",
                ORRERY_VERSION);
  std::snprintf(version_info->kgni_build_string, sizeof version_info->kgni_build_string, "orrery %s",
                ORRERY_VERSION);
  return GNI_RC_SUCCESS;
}

}  // extern "C"
