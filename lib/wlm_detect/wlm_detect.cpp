// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "include/wlm_detect/wlm_detect.h"

#include <cstdlib>
#include <cstring>

extern "C" {

char* wlm_detect_get_active(void) {
  return std::getenv("SLURM_PROCID") != nullptr ? strdup("SLURM") : wlm_detect_get_default();
}

char* wlm_detect_get_default(void) { return strdup("ALPS"); }

}  // extern "C"
