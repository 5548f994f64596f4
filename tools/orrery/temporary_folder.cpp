// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/temporary_folder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace orrery::tool {

namespace {

constexpr std::string_view kName = "orrery-tmp-";
constexpr std::size_t kRandom = 6;  // letters that mkdtemp() chooses
constexpr int kAttempts = 8;

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};
using Dir = std::unique_ptr<DIR, CloseDir>;

// The folder, opened and locked, if it is one of ours and no process has it.
UniqueFd locked(int parent, const char* name) {
  UniqueFd fd(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat there {};
  if (!fd.valid() || fstat(fd.get(), &there) != 0 || there.st_uid != geteuid() ||
      (there.st_mode & 077) != 0 || flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return {};
  return fd;
}

// REQUIRES: `folder` is locked. Only what it holds itself: there are no folders in it.
void remove_locked(int parent, const char* name, int folder) {
  if (const int again = dup(folder); again >= 0) {
    if (const Dir list(fdopendir(again)); list != nullptr) {
      rewinddir(list.get());
      while (const dirent* const entry = readdir(list.get())) (void)unlinkat(folder, entry->d_name, 0);
    }
  }
  (void)unlinkat(parent, name, AT_REMOVEDIR);
}

void remove_left_behind(const std::string& base) {
  const Dir list(opendir(base.c_str()));
  if (list == nullptr) return;
  std::vector<std::string> names;
  while (const dirent* const entry = readdir(list.get())) {
    const std::string_view name(entry->d_name);
    if (name.starts_with(kName) && name.size() == kName.size() + kRandom) names.emplace_back(name);
  }
  for (const std::string& name : names) {
    if (const UniqueFd folder = locked(dirfd(list.get()), name.c_str()); folder.valid())
      remove_locked(dirfd(list.get()), name.c_str(), folder.get());
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  const char* const chosen = std::getenv("TMPDIR");
  const std::string base = chosen == nullptr || *chosen == 0 ? "/tmp" : chosen;
  remove_left_behind(base);
  // One that is made is not locked at once: another process may take it for left behind in between.
  for (int attempt = 0; attempt < kAttempts && !lock_.valid(); ++attempt) {
    path_ = fmt::format("{}/{}XXXXXX", base, kName);
    if (mkdtemp(path_.data()) == nullptr) {
      problem_ = fmt::format("no folder {} for temporary files can be made: {}", path_, std::strerror(errno));
      return;
    }
    lock_ = locked(AT_FDCWD, path_.c_str());
    if (lock_.valid() && access(path_.c_str(), F_OK) != 0) lock_.reset();
  }
  if (!lock_.valid()) problem_ = fmt::format("the folder {} for temporary files cannot be locked", path_);
}

TemporaryFolder::~TemporaryFolder() {
  // A forked child leaves its parent's alone.
  if (lock_.valid() && owner_ == getpid()) remove_locked(AT_FDCWD, path_.c_str(), lock_.get());
}

}  // namespace orrery::tool
