// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/engine/types.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

namespace orrery::sim {

// The embedded processor of a SeaStar receiver, which does one thing after the other. Source: Dillow and
// Atchley, "SeaStar Unchained", section II: each entry of the CAM has a queue of seven commands, "if ... the
// associated command queue is empty, the RX pipeline is stalled and the embedded processor must take action".
// A message takes two, so that a source has commands for three messages; when one has come whole the
// processor sets up two others, in the time that it takes for a message (0.96 us unreliable, 1.56 us
// reliable, measured). A message of one packet it reads out of the FIFO itself, in the same time.
//
// That the commands of three messages stand ready before the first one comes is an assumption. With it a
// source gets through what the paper measured, a message each 0.96 us or as fast as its bytes come, whichever
// is slower, and a message that comes alone waits for nothing beyond the latencies of the NIC.
//
// LIMITATIONS: any number of sources have commands at once, not the CAM's 256 only; messages of more than
// 256 KB, which need more commands, take two.
//
// Owned by a node, touched by its partition's thread only.
// 1. A source is in ready_ if it has commands for fewer than kMessages messages.
// 2. jobs_ are in the order of their ends. Calls are in the order of `now`.
class StreamFirmware {
 public:
  static constexpr std::uint32_t kCommands = 7, kCommandsAMessage = 2;
  static constexpr std::uint32_t kMessages = kCommands / kCommandsAMessage;

  // Something that the pipeline waits for: ticks until it is done, with all that was begun before.
  Tick act(Tick now, Tick service) {
    free_at_ = std::max(free_at_, now) + service;
    return free_at_ - now;
  }
  // A message's first packet is at the head: ticks until there are commands for it.
  Tick begin(Node source, Tick now) {
    settle(now);
    std::uint32_t& ready = ready_.try_emplace(source, kMessages).first->second;
    if (ready > 0) {
      --ready;
      return 0;
    }
    const auto next =
        std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& job) { return job.source == source; });
    // Messages that lost links have left unfinished have taken them all: those go on.
    if (next == jobs_.end()) return 0;
    const Tick wait = next->done - now;
    jobs_.erase(next);
    return wait;
  }
  // Its last packet has come at `at`.
  void end(Node source, Tick at, Tick service) {
    free_at_ = std::max(free_at_, at) + service;
    jobs_.push_back({free_at_, source});
  }
  std::size_t bytes() const { return jobs_.size() * sizeof(Job) + ready_.size() * 32; }

 private:
  struct Job {
    Tick done;
    Node source;
  };
  void settle(Tick now) {
    for (; !jobs_.empty() && jobs_.front().done <= now; jobs_.pop_front())
      if (const auto at = ready_.find(jobs_.front().source); at != ready_.end() && ++at->second >= kMessages)
        ready_.erase(at);
  }
  Tick free_at_ = 0;
  std::deque<Job> jobs_;
  std::unordered_map<Node, std::uint32_t> ready_;  // messages that there are commands for
};

}  // namespace orrery::sim
