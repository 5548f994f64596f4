// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/transport/request.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace orrery::nic {

struct Endpoint;

class SequenceTable;

// One sequence: the packets of one transaction, to any number of targets, and how they ended. Packets may be
// delivered in any order; the sequence is over when every one of them has been, and keeps the first error.
// (The Gemini paper, section 2.5, synchronization sequence identification.)
//
// Threads: the one that opened it adds packets; any thread ends them.
// Invariants: (1) left counts packets in flight, and one more while the sequence is open; (2) the one that
// takes it to 0 finishes the sequence, once.
struct Sequence final : Listener {
  std::atomic<std::uint32_t> left{0};
  std::atomic<std::uint64_t> first_error{0};  // 0: none; else the Errc | process slot of its target << 8
  bool polled = false;                        // its owner asks for it; else `completion` is told
  std::uint32_t name = 0;                     // 10 bits of place, then generation
  SequenceTable* home = nullptr;
  Completion completion;  // told in the end; not polled

  void note(Errc status, std::uint16_t target) {
    std::uint64_t none = 0;
    if (status != Errc::ok) {
      first_error.compare_exchange_strong(
          none, static_cast<std::uint64_t>(status) | std::uint64_t{target} << 8, std::memory_order_relaxed);
    }
  }
  // One of its parts is over.
  void ended(const Completion& part, const Ending& ending) override;
  // True: that was the last one. Acquire and release: the last one sees what the others noted.
  bool take_off() { return left.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  Errc status() const { return static_cast<Errc>(first_error.load(std::memory_order_relaxed) & 0xff); }
};

// The sequences that a NIC can have at a time. Own lock; not on the way of a single put.
class SequenceTable {
 public:
  static constexpr std::uint32_t kCapacity = 1024;

  SequenceTable();
  // An open one with nothing in it, or null when all are in use. Stays where it is until close().
  Sequence* open();
  // The open one of that name, or null. Any bits are accepted.
  Sequence* find(std::uint32_t name);
  void close(Sequence& sequence);
  std::uint32_t open_count() const;

 private:
  struct Slot {
    Sequence sequence;
    std::uint32_t generation = 0;
    bool used = false;
  };
  mutable Lock<LockRank::sequences> mu_;
  std::unique_ptr<Slot[]> slots_;
  std::vector<std::uint16_t> free_;  // guarded by mu_
};

// One part of a chain: a request with the endpoint that it goes by. Of the request's flags only kRemoteEvent
// and kInOrder count.
struct ChainPart {
  Endpoint* endpoint = nullptr;
  Request request;
};

}  // namespace orrery::nic
