// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <sys/types.h>

namespace orrery::memory {

// Bulk copies to and from memory of another process that is not in its memory file (process_vm_readv(2),
// process_vm_writev(2)). An accelerator, never required: kernels, containers and Yama refuse it.
// Stateless value type; any thread; blocks only for the copy.
// Invariant: after an error any prefix may have been copied (a put's destination is then undefined, as on the
// hardware).
// Usage: auto peer = CrossAttach::probe(pid, va_of_word, word); if (peer.ok()) peer.value().read(to, va, 8);
class CrossAttach {
 public:
  CrossAttach() = default;

  // Whether this process may attach to `pid`: reads the eight bytes at `va` there and compares them with
  // `expected` (a nonce that the peer published), so that a pid of another namespace is not mistaken for the
  // peer. Errc::permission: not allowed here; Errc::unreachable: no such process; Errc::no_match: another
  // process; Errc::unsupported: no such system call.
  static Result<CrossAttach> probe(pid_t pid, std::uint64_t va, std::uint64_t expected);

  // Copies `bytes` from the peer's `va` to `to`. Errc::bounds: part of the range cannot be read there;
  // Errc::unreachable: the peer is gone; Errc::permission.
  Status read(void* to, std::uint64_t va, std::size_t bytes) const;
  // Whether the calling thread can write_while() (base/call_while.hpp).
  static bool can_write();
  // Copies `bytes` from `from` to the peer's `va` while `word` is `expected`: a thread that is stopped before
  // the kernel has taken over, and goes on when the word has changed, writes nothing. Same errors; not_done:
  // the word has changed, or a debugger steps through the thread; unsupported: not can_write(). The owner's
  // adoption must be kept away meanwhile (SwitchGuard::before_switch).
  Status write_while(const std::atomic<std::uint64_t>& word, std::uint64_t expected, std::uint64_t va,
                     const void* from, std::size_t bytes) const;

 private:
  pid_t pid_ = 0;
};

}  // namespace orrery::memory
