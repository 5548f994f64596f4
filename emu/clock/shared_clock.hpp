// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/unique_fd.hpp"
#include "emu/clock/board.hpp"
#include "emu/clock/choice.hpp"
#include "emu/clock/clock.hpp"
#include "emu/job/job.hpp"
#include "emu/model/collective.hpp"
#include "emu/model/link_state.hpp"
#include "emu/model/machine.hpp"
#include "emu/model/quote.hpp"

#include <memory>

namespace orrery::clock {

// One operation as the machine was asked about it, and what it said.
struct Priced {
  model::QuoteRequest request;
  model::Quote quote;
  Times times;
};

// The job's shared memory of the clock: the board, and behind it the state of the machine's links. PE 0 makes
// it and offers its descriptor; the others ask PE 0 for it. Owns the mapping and the compiled machine.
class SharedClock {
 public:
  // Blocks until PE 0 has made it, at most 60 s. Errors: invalid_param (this PE's node is none of the
  // machine's, more PEs than a job may have, a PE that chose otherwise), unsupported (no ranks yet), timeout,
  // and those of the parts; the log says why.
  // `first`: the process that is PE 0, where the caller knows it; else the one of rank 0 in the directory.
  static Result<std::unique_ptr<SharedClock>> open(job::Job& job, const Choice& choice,
                                                   job::ProcessRef first);
  // PEs of one process, without a launcher: PE 0 makes it, the others are given PE 0's, which outlives
  // theirs. `nodes`: of every PE. Errors: as open(), but for timeout.
  static Result<std::unique_ptr<SharedClock>> for_test(const Choice& choice, std::uint32_t pe,
                                                       const std::vector<std::uint32_t>& nodes,
                                                       const SharedClock* first);
  ~SharedClock();
  SharedClock(const SharedClock&) = delete;
  SharedClock& operator=(const SharedClock&) = delete;

  Board& board() { return *board_; }
  // What the PEs owe each other's nodes; behind the board.
  Owed owed() const;
  model::LinkState& links() { return links_; }
  const model::Pricing& pricing() const { return machine_->pricing; }
  const model::Machine& machine() const { return *machine_; }
  std::uint32_t pe() const { return pe_; }
  std::uint32_t pes() const { return board_->header.pes; }
  std::uint32_t node() const { return node_; }

  // Asks the machine about an operation that begins at `begun`, the `number`-th of this PE, which makes its
  // random choices its own; takes the links that it needs. REQUIRES: operation.target < kMaxPes.
  Priced price(const Operation& operation, Picos begun, std::uint64_t number);
  // No operation that begins now or later does anything at its target sooner than this from now.
  Picos least_latency() const;
  // What a look takes that finds nothing.
  Picos look_time() const;
  // What a collective of the job's PEs takes, entered by all at once.
  Picos collective_time(model::Collective collective, std::uint64_t bytes) const;

 private:
  SharedClock() = default;
  Status build(const Choice& choice);
  Status make(const Choice& choice, std::uint32_t pes);
  Status check(const Choice& choice, std::uint32_t pes);
  Status attach(UniqueFd fd, const Choice& choice, std::uint32_t pes);

  std::unique_ptr<model::Machine> machine_;
  UniqueFd fd_;
  Board* board_ = nullptr;
  std::size_t bytes_ = 0;
  bool borrowed_ = false;  // another one's mapping, which outlives this
  model::LinkState links_;
  std::uint32_t pe_ = 0, node_ = 0;
  std::vector<std::uint32_t> first_of_node_;  // for each PE, the first one on its node
};

}  // namespace orrery::clock
