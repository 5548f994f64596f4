// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/wait.hpp"
#include "emu/nic/target/match_packets.hpp"
#include "lib/portals4/process.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace orrery::portals4 {

// Applies the match unit's rules to messages that come by frame. A message that fits one packet is over with
// its first step; a longer one stays open until its initiator finishes it or dies.
// Threads: serve() whichever thread polls; a thread of its own, started by the first frame that needs it,
// carries out triggers and ends messages of the dead. Lock: mu_, under which the match unit's is taken.
class FrameServer final : public match::PacketServer {
 public:
  static FrameServer& get();
  // From now on messages for `pid` are taken. REQUIRES: the process's match unit is there.
  void start(std::uint32_t pid);
  void stop();
  Errc serve(const wire::PacketHeader& header, std::span<const std::byte> payload,
             std::span<std::byte> answer) override;

 private:
  // A message that needs further packets.
  struct Open {
    nic::ProcessName source;
    match::OpKind kind = match::OpKind::put;
    match::Arrival arrival;
    match::Verdict verdict;
    bool applied = false;
    std::uint8_t operand[match::kMaxSwapBytes] = {};
    std::vector<std::byte> bytes;  // of an atomic: the operands, then what was there before
  };

  Errc open(wire::ProcessSlot source, std::span<const std::byte> payload, std::span<std::byte> room,
            match::StepAnswer* said);
  static Errc go_on(const match::StepHead& head, Open& message, std::span<const std::byte> payload,
                    std::span<std::byte> room, match::StepAnswer* said);
  static Errc put_part(Open& message, std::uint64_t at, std::span<const std::byte> bytes);
  static Errc get_part(Open& message, std::uint64_t at, std::span<std::byte> room, match::StepAnswer* said);
  static Errc apply_atomic(Open& message);
  static void finish(Open& message, match::Fail fail);
  void ring();
  bool reap();
  [[noreturn]] void run();

  std::atomic<std::uint32_t> pid_{match::kAny};  // kAny: nothing is taken
  std::mutex mu_;
  std::map<std::uint64_t, Open> open_;  // by token, guarded by mu_
  std::uint64_t last_token_ = 0;        // guarded by mu_
  std::once_flag started_;
  FutexWord bell_{0};
};

}  // namespace orrery::portals4
