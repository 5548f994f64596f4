// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/unique_fd.hpp"

#include <string>

#include <unistd.h>

namespace orrery::tool {

// A folder for temporary files that only this user may enter, in TMPDIR or /tmp. It is locked as long as
// this object lives, and removed with its files afterwards; one that a killed process has left is not
// locked any more, and the next of this class that is made removes it.
class TemporaryFolder {
 public:
  // problem(): why there is none.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  bool there() const { return lock_.valid(); }
  const std::string& problem() const { return problem_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string problem_;
  UniqueFd lock_;
  pid_t owner_ = getpid();
};

}  // namespace orrery::tool
