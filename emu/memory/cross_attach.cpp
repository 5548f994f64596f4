// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/cross_attach.hpp"

#include "emu/base/log.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/uio.h>

namespace orrery::memory {

namespace {

// The kernel counts one call's bytes in a ssize_t capped at 2 GiB less a page.
constexpr std::size_t kMostPerCall = std::size_t{1} << 30;

Status from_errno(int error) {
  switch (error) {
    case EFAULT:
      return Errc::bounds;
    case ESRCH:
      return Errc::unreachable;
    case EPERM:
      return Errc::permission;
    case ENOSYS:
      return Errc::unsupported;
    case ENOMEM:
      return Errc::no_memory;
    default:
      log::error("attach: {}", std::strerror(error));
      return Errc::system;
  }
}

using Transfer = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

// One transfer may end early at a page it cannot reach: the next call then tells why.
Status copy(Transfer transfer, pid_t pid, std::byte* here, std::uint64_t there, std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, kMostPerCall);
    const iovec local{here, part};
    const iovec remote{reinterpret_cast<void*>(there), part};
    const ssize_t moved = transfer(pid, &local, 1, &remote, 1, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return from_errno(errno);
    if (moved == 0) return Errc::bounds;
    here += moved;
    there += static_cast<std::uint64_t>(moved);
    bytes -= static_cast<std::size_t>(moved);
  }
  return {};
}

}  // namespace

Result<CrossAttach> CrossAttach::probe(pid_t pid, std::uint64_t va, std::uint64_t expected) {
  CrossAttach peer;
  peer.pid_ = pid;
  std::uint64_t found = 0;
  const Status status = peer.read(&found, va, sizeof found);
  // Nothing there: as much another process as one with another value.
  if (status == Errc::bounds) return Errc::no_match;
  if (!status.ok()) return status.code();
  if (found != expected) return Errc::no_match;
  return peer;
}

Status CrossAttach::read(void* to, std::uint64_t va, std::size_t bytes) const {
  return copy(&process_vm_readv, pid_, static_cast<std::byte*>(to), va, bytes);
}

Status CrossAttach::write(std::uint64_t va, const void* from, std::size_t bytes) const {
  // The kernel only reads the local side of process_vm_writev.
  return copy(&process_vm_writev, pid_, static_cast<std::byte*>(const_cast<void*>(from)), va, bytes);
}

}  // namespace orrery::memory
