// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/output_file.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace orrery {

namespace {

constexpr mode_t kMode = 0666;  // less what the user's umask takes

bool is_ours(const struct stat& file) { return S_ISREG(file.st_mode) && file.st_uid == geteuid(); }

}  // namespace

int create_file(const char* path) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode);
    if (fd >= 0 || errno != EEXIST) return fd;
    struct stat there {};
    if (lstat(path, &there) == 0 && (!is_ours(there) || unlink(path) != 0)) break;
  }
  errno = EEXIST;
  return -1;
}

int append_to_file(const char* path) {
  // Without waiting for the reader of a FIFO.
  const int fd =
      open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, kMode & ~mode_t{022});
  struct stat there {};
  if (fd < 0 || (fstat(fd, &there) == 0 && is_ours(there) && there.st_nlink == 1)) return fd;
  close(fd);
  errno = EEXIST;
  return -1;
}

int open_created(const char* path) {
  const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat there {};
  if (fd < 0 || (fstat(fd, &there) == 0 && is_ours(there))) return fd;
  close(fd);
  errno = EEXIST;
  return -1;
}

int open_output(const char* path) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, kMode);
  if (fd >= 0) (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

}  // namespace orrery
