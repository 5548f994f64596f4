// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "bench/common/session.hpp"
#include "emu/model/collective.hpp"
#include "emu/model/machine.hpp"
#include "emu/model/quote.hpp"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace bench {

// What the machine's model says of what a program measures (--model): quotes asked here, of a network of the
// program's own, without other users. So the column tells what the emulation adds to the model's word, under
// any clock. One thread.
//
// LIMITATIONS: knows the program's own operations, not what else runs; random choices of routes are other
// ones than the job's (latencies are means over kSeeds of them).
class Model {
 public:
  // A PE's operations go from one rank to another.
  using Flow = std::pair<int, int>;
  static constexpr int kSeeds = 64;

  // The machine of ORRERY_MACHINE. Ends the program with 2 and one line where there is none.
  explicit Model(const Session& session) : Model(session.rank, session.size) {}
  Model(int rank, int size);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // From the call to data at its destination (of gets: here), to the event there, to the event here;
  // microseconds, on a quiet network.
  double data_us(orrery::model::Op op, Flow flow, std::uint64_t bytes) const;
  double remote_event_us(orrery::model::Op op, Flow flow, std::uint64_t bytes) const;
  double local_event_us(orrery::model::Op op, Flow flow, std::uint64_t bytes) const;

  // Every flow posts `count` operations, waits for all its events, and again: nanoseconds a round.
  double window_ns(orrery::model::Op op, const std::vector<Flow>& flows, std::uint64_t bytes,
                   int count) const;
  // A barrier of `pes` PEs by puts (dissemination): what the last one takes, microseconds.
  double dissemination_us(int pes) const;
  // The machine's own, by its closed form, microseconds.
  double collective_us(orrery::model::Collective collective, int pes, std::uint64_t bytes) const;

 private:
  orrery::model::NodeId node(int rank) const { return nodes_[static_cast<std::size_t>(rank)]; }
  template <typename Point>
  double mean_us(orrery::model::Op op, Flow flow, std::uint64_t bytes, Point point) const;

  std::unique_ptr<orrery::model::Machine> machine_;
  std::vector<orrery::model::NodeId> nodes_;  // of each rank
};

}  // namespace bench
