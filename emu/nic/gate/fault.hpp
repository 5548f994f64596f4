// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/fault_spec.hpp"
#include "emu/base/status.hpp"
#include "emu/nic/initiator/request.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/state/nic_state.hpp"
#include "emu/nic/state/request.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

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

// What becomes of one operation.
struct FaultOutcome {
  Errc status = Errc::ok;     // else: it ends so, and moves nothing
  std::int64_t delay_ns = 0;  // it is carried out so much later
  std::uint32_t link_errors = 0;
  std::uint32_t retransmits = 0;
};

// Decides by seed what becomes of each operation that a NIC starts. The same seed, PE and operations give the
// same faults. An operation is what a program posts, however many packets it takes.
//
//   dead    the node is gone, ours or the other: unreachable
//   revoke  the remote handle is withdrawn for us, now and for later: invalid_handle
//   link    a packet arrives with a wrong CRC at a link's end, which asks for it again: only the counter
//           shows it, until kLinkTries in a row fail and the link is given up: unreachable
//   corrupt damage that the links did not see but the NIC did: corrupt
//   drop    no answer comes: timeout
//   delay   it is carried out later; what must stay behind it does
//
// Messages and credits that are dropped or corrupt are retransmitted as often as the connection allows.
//
// Threads: any. Usage: faults.decide({.from = from, .to = to, .key = request.remote, .tries = 1});
class FaultUnit {
 public:
  static constexpr int kLinkTries = 16;

  // `pe`: whose; -1 when that is not known.
  FaultUnit(const FaultSpec& spec, std::int32_t pe, FaultCounters& counters);
  ~FaultUnit();

  struct Query {
    std::uint32_t from = 0;  // NIC addresses
    std::uint32_t to = 0;
    MemKey key;               // not valid: none
    std::uint32_t tries = 1;  // how often it may be sent
    bool can_wait = true;     // else it is not delayed
  };
  FaultOutcome decide(const Query& query);
  // Whether the way between the two is gone by now.
  bool is_cut(std::uint32_t from, std::uint32_t to);

 private:
  struct Rng;

  bool happens(const FaultWhen& when);
  bool is_dead(std::uint32_t address) const;

  const FaultSpec spec_;
  const bool concerned_;  // this PE is one of those that meet faults
  FaultCounters& counters_;
  Lock<LockRank::faults> mu_;
  const std::unique_ptr<Rng> rng_;                  // guarded by mu_
  std::uint64_t operation_ = 0;                     // guarded by mu_
  std::set<std::array<std::uint64_t, 2>> revoked_;  // keys, guarded by mu_
};

// Operations that are held back, oldest first. An operation stays in the list until it was carried out, so
// that what has to stay behind it sees it.
struct Delayed {
  Request request;
  std::vector<std::byte> payload;  // what `request` then sends, unless it is a block transfer
  std::int64_t due_ns = 0;
  bool is_held = false;  // found no room on the wire (Nic::hold); counted in Peer::in_flight
  bool running = false;  // guarded by DelayLine::mu
};

struct DelayLine {
  static constexpr std::size_t kCapacity = 4096;
  Lock<LockRank::delays> mu;
  std::list<Delayed> list;  // by due_ns, then as they came; guarded by mu
  std::atomic<bool> running{false};
  std::atomic<std::uint32_t> count{0};
};

}  // namespace orrery::nic
