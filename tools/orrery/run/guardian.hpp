// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/unique_fd.hpp"

#include <sys/types.h>

namespace orrery::tool {

// A process that ends the PEs when the launcher is killed before it could: it sleeps on a pipe from the
// launcher and kills the process groups it was told of when the pipe ends without a goodbye.
class Guardian {
 public:
  Guardian() = default;
  ~Guardian() { dismiss(); }
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  // Starts the process; false (errno) when it cannot.
  bool start();
  // From now on the group `pgid` dies with the launcher; after release() it does not.
  void watch(pid_t pgid);
  void release(pid_t pgid);
  // Says goodbye and waits for it to end.
  void dismiss();
  pid_t pid() const { return pid_; }

 private:
  void tell(pid_t word);

  UniqueFd pipe_;
  pid_t pid_ = -1;
};

}  // namespace orrery::tool
