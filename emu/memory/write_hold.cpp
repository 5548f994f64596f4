// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/write_hold.hpp"

#include "emu/base/own_descriptor.hpp"
#include "emu/memory/raw_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace orrery::memory {

namespace {

// Linux 6.4; the headers of Debian 12 are older.
constexpr std::uint64_t kFeatureUnpopulated = std::uint64_t{1} << 13;
constexpr std::uint64_t kPagemapWriteProtected = std::uint64_t{1} << 57;

uffdio_range uffd_range(Range range) { return {.start = range.begin, .len = range.size()}; }

Status from_errno(int error) {
  if (error == ENOMEM) return Errc::no_resource;
  if (error == EBUSY || error == EINVAL) return Errc::invalid_state;
  return Errc::system;
}

// A userfaultfd answers UFFDIO_API once: the features that the kernel lacks make it fail, so try again with
// fewer.
int open_with(int flags, std::uint64_t features) {
  const int file = own_descriptor(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags)));
  if (file < 0) return -1;
  uffdio_api api{.api = UFFD_API, .features = features, .ioctls = 0};
  if (ioctl(file, UFFDIO_API, &api) == 0) return file;
  close(file);
  return -1;
}

}  // namespace

void open_userfault(ProcessState& state) {
  const std::uint64_t base = UFFD_FEATURE_PAGEFAULT_FLAG_WP;
  const std::uint64_t sets[] = {base | UFFD_FEATURE_WP_HUGETLBFS_SHMEM | kFeatureUnpopulated,
                                base | UFFD_FEATURE_WP_HUGETLBFS_SHMEM, base};
  for (const int flags : {0, UFFD_USER_MODE_ONLY}) {
    for (const std::uint64_t features : sets) {
      state.userfault = open_with(flags, features);
      if (state.userfault < 0) continue;
      state.userfault_shared = (features & UFFD_FEATURE_WP_HUGETLBFS_SHMEM) != 0;
      state.userfault_unpopulated = (features & kFeatureUnpopulated) != 0;
      state.blocker = flags == 0 ? Blocker::userfault : Blocker::userfault_user;
      return;
    }
  }
}

Blocker hold_method(const ProcessState& state, bool file_backed, bool in_memory_file) {
  const bool takes = in_memory_file ? state.userfault_shared : !file_backed;
  return takes ? state.blocker : Blocker::protect;
}

WriteHold::WriteHold(ProcessState& state, Range chunk, int protection, bool file_backed, bool in_memory_file)
    : state_(state),
      chunk_(chunk),
      protection_(protection),
      in_memory_file_(in_memory_file),
      method_(hold_method(state, file_backed, in_memory_file)) {}

Status WriteHold::write_protect() {
  // Without the mark on pages that are not there, a write to one would pass: make them there.
  if (!in_memory_file_ && !state_.userfault_unpopulated)
    raw::madvise(chunk_.begin, chunk_.size(), MADV_POPULATE_READ);
  uffdio_writeprotect protect{.range = uffd_range(chunk_), .mode = UFFDIO_WRITEPROTECT_MODE_WP};
  while (ioctl(state_.userfault, UFFDIO_WRITEPROTECT, &protect) != 0)
    if (errno != EAGAIN) return from_errno(errno);
  return {};
}

Status WriteHold::hold() {
  if (method_ == Blocker::protect) {
    if (raw::mprotect(chunk_.begin, chunk_.size(), protection_ & ~PROT_WRITE) == 0) return {};
    return from_errno(errno);
  }
  uffdio_register reg{.range = uffd_range(chunk_), .mode = UFFDIO_REGISTER_MODE_WP, .ioctls = 0};
  if (ioctl(state_.userfault, UFFDIO_REGISTER, &reg) != 0) return from_errno(errno);
  const Status status = write_protect();
  if (!status.ok()) let_go(false);
  return status;
}

Status WriteHold::close() {
  if (method_ == Blocker::protect || in_memory_file_) return {};
  uffdio_register reg{.range = uffd_range(chunk_),
                      .mode = UFFDIO_REGISTER_MODE_WP | UFFDIO_REGISTER_MODE_MISSING,
                      .ioctls = 0};
  return ioctl(state_.userfault, UFFDIO_REGISTER, &reg) == 0 ? Status{} : from_errno(errno);
}

Status WriteHold::hold_again() {
  if (method_ == Blocker::protect) return {};
  // A registration gives up its modes as a whole.
  uffdio_range range = uffd_range(chunk_);
  ioctl(state_.userfault, UFFDIO_UNREGISTER, &range);
  return hold();
}

bool WriteHold::intact() const {
  if (method_ == Blocker::protect || in_memory_file_ || state_.pagemap < 0) return true;
  std::uint64_t entries[512];
  for (std::uint64_t at = chunk_.begin; at < chunk_.end;) {
    const std::uint64_t pages = std::min<std::uint64_t>((chunk_.end - at) / kPageBytes, std::size(entries));
    const std::uint64_t bytes = pages * sizeof entries[0];
    if (raw::pread(state_.pagemap, entries, bytes, at / kPageBytes * sizeof entries[0]) !=
        static_cast<std::int64_t>(bytes))
      return true;  // not told: as without pagemap
    for (std::uint64_t i = 0; i < pages; ++i)
      if ((entries[i] & kPagemapWriteProtected) == 0) return false;
    at += pages * kPageBytes;
  }
  return true;
}

void WriteHold::let_go(bool replaced) {
  if (method_ == Blocker::protect) {
    // Waiters sleep on ProcessState::sequence; the end of the switch wakes them.
    if (!replaced) raw::mprotect(chunk_.begin, chunk_.size(), protection_);
    return;
  }
  uffdio_range range = uffd_range(chunk_);
  if (!replaced) {
    uffdio_writeprotect protect{.range = range, .mode = 0};
    while (ioctl(state_.userfault, UFFDIO_WRITEPROTECT, &protect) != 0 && errno == EAGAIN) {
    }
    ioctl(state_.userfault, UFFDIO_UNREGISTER, &range);
  }
  ioctl(state_.userfault, UFFDIO_WAKE, &range);
}

}  // namespace orrery::memory
