// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdio>
#include <cstdlib>

#include <dmapp.h>
#include <pmi.h>

namespace bench {

// Ends the job with the name of the call that failed, and why.
inline void require(dmapp_return_t rc, const char* call) {
  if (rc == DMAPP_RC_SUCCESS) return;
  const char* text = "";
  dmapp_explain_error(rc, &text);
  std::fprintf(stderr, "%s: %s\n", call, text);
  PMI_Abort(1, call);
  std::exit(1);
}
#define BENCH_DMAPP(call) ::bench::require(call, #call)

}  // namespace bench
