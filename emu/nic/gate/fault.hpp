// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/fault_spec.hpp"
#include "emu/base/status.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/state/nic_state.hpp"
#include "emu/nic/state/request.hpp"
#include "emu/nic/transport/refusal.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace orrery::nic {

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

}  // namespace orrery::nic
