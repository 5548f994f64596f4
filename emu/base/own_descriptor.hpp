// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace orrery {

// The descriptor that the runtime goes on with, in place of one that it has just opened: a program may have
// been started with standard input, output or error closed, and what it writes there must not reach a file of
// ours. Numbers of 3 and up, and -1, are returned as they are; of a smaller one a duplicate, close-on-exec,
// and the small number is free again.
inline int own_descriptor(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (moved < 0) return fd;  // no number is left: rather a small one than none
  ::close(fd);
  return moved;
}

// Puts /dev/null where standard input, output or error is closed, for good: before a library of others starts
// threads that open descriptors now and later, and take the smallest.
inline void hold_standard_descriptors() {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    const int held = ::open("/dev/null", O_RDWR);
    if (held > STDERR_FILENO) ::close(held);
  }
}

}  // namespace orrery
