// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/cross_attach.hpp"

#include "emu/base/call_while.hpp"
#include "emu/base/log.hpp"
#include "emu/memory/retry_call.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/syscall.h>
#include <sys/uio.h>

namespace orrery::memory {

namespace {

// The kernel counts one call's bytes in a ssize_t capped at 2 GiB less a page.
constexpr std::size_t kMostPerCall = std::size_t{1} << 30;
constexpr long kChanged = 1 << 16;  // no errno: the word that a write depends on

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

// Moves all of it by `transfer(local, remote)`, which gives a count of bytes or -errno. One transfer may end
// early at a page it cannot reach: the next call then tells why.
template <typename Transfer>
Status copy(Transfer transfer, std::byte* here, std::uint64_t there, std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, kMostPerCall);
    const iovec local{here, part};
    const iovec remote{reinterpret_cast<void*>(there), part};
    const long moved = transfer(local, remote);
    if (moved == -EINTR) continue;
    if (moved == -kChanged) return Errc::not_done;
    if (moved < 0) return from_errno(static_cast<int>(-moved));
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
  return copy(
      [this](const iovec& local, const iovec& remote) -> long {
        // Our own pages may be held for their move.
        const ssize_t moved = retry_call([&] { return process_vm_readv(pid_, &local, 1, &remote, 1, 0); });
        return moved < 0 ? -errno : moved;
      },
      static_cast<std::byte*>(to), va, bytes);
}

bool CrossAttach::can_write() { return can_call_while(); }

Status CrossAttach::write_while(const std::atomic<std::uint64_t>& word, std::uint64_t expected,
                                std::uint64_t va, const void* from, std::size_t bytes) const {
  if (!can_write()) return Errc::unsupported;
  return copy(
      [&](const iovec& local, const iovec& remote) -> long {
        const CallWhile call =
            call_while(word, expected, SYS_process_vm_writev,
                       {static_cast<std::uint64_t>(pid_), reinterpret_cast<std::uint64_t>(&local), 1,
                        reinterpret_cast<std::uint64_t>(&remote), 1, 0});
        return call.outcome == CallWhile::Outcome::called ? call.result : -kChanged;
      },
      // The kernel only reads the local side of process_vm_writev.
      static_cast<std::byte*>(const_cast<void*>(from)), va, bytes);
}

}  // namespace orrery::memory
