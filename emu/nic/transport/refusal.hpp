// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/state/nic_state.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace orrery::nic {

// Faults that a NIC's operations met, and packets of others that it refused and whose initiator does not wait
// for an answer. In the segment, so that others can look.
struct FaultCounters {
  std::atomic<std::uint64_t> dropped;
  std::atomic<std::uint64_t> corrupted;
  std::atomic<std::uint64_t> revoked;      // operations through a revoked handle
  std::atomic<std::uint64_t> unreachable;  // operations from or to a dead node
  std::atomic<std::uint64_t> delayed;
  std::atomic<std::uint64_t> link_errors;    // CRC errors on a link, each followed by a retry of the link
  std::atomic<std::uint64_t> links_failed;   // operations whose link gave up
  std::atomic<std::uint64_t> retransmitted;  // retransmissions of messages
};

// Frames of one process that this NIC refused without an answer: the process reads this when it knows that
// they were taken out. newest: 63..32 how many | 31..16 domain | 7..0 Errc of the last. One 64-bit word, so
// that it is whole; written by the target alone.
struct alignas(kCacheLine) Refusals {
  std::atomic<std::uint64_t> newest;
};

struct ErrorState {
  alignas(kCacheLine) FaultCounters faults;
  Refusals refusals[kMaxProcesses];
};
static_assert(sizeof(FaultCounters) == 64 && offsetof(ErrorState, refusals) == 64);

inline ErrorState& error_state(const NicView& nic) { return nic.unit<ErrorState, kErrorArea>(); }

namespace refusal {
constexpr std::uint64_t next(std::uint64_t word, std::uint16_t domain, Errc status) {
  return ((word >> 32) + 1) << 32 | std::uint64_t{domain} << 16 | static_cast<std::uint64_t>(status);
}
constexpr std::uint32_t count(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }
constexpr std::uint16_t domain(std::uint64_t word) { return static_cast<std::uint16_t>(word >> 16); }
constexpr Errc status(std::uint64_t word) {
  return (word & 0xff) < kErrcCount ? static_cast<Errc>(word & 0xff) : Errc::corrupt;
}
}  // namespace refusal

}  // namespace orrery::nic
