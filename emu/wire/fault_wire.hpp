// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

// A bad link, by seed: what stands between a wire that sends frames and the network when one asks for faults.
namespace orrery::wire {

// Chance of each fault for each frame, 0 to 1. A frame that meets several meets the first of them in this
// order.
struct FaultRates {
  double drop = 0;
  double corrupt = 0;    // one to four of its bits are flipped
  double duplicate = 0;  // goes out twice
  double reorder = 0;    // goes out after up to eight later ones
  double delay = 0;      // goes out delay_ns later
  std::int64_t delay_ns = 2'000'000;
  std::uint64_t seed = 1;

  static constexpr std::string_view kAccepted =
      "drop=P,corrupt=P,duplicate=P,reorder=P,delay=P with P from 0 to 1, and seed=N; any of them";
  // From text as above. Errors: invalid_param.
  static Result<FaultRates> parse(std::string_view text);
};

struct FaultCounts {
  std::uint64_t dropped = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t delayed = 0;
};

// Decides what becomes of each frame. The same seed and the same calls give the same faults. One thread at a
// time. Usage: faults.pass(peer, frame, now, send);  ...  faults.release(now, send);
class FaultWire {
 public:
  // Called for each frame that goes out. The bytes live for the call.
  using Send = std::function<void(std::uint32_t to, std::span<const std::byte> frame)>;

  explicit FaultWire(const FaultRates& rates) : rates_(rates), random_(rates.seed) {}

  // Takes a frame for `to` and calls `send` zero, one or two times, and for held frames whose turn has come.
  // now_ns: any clock that does not go back.
  void pass(std::uint32_t to, std::span<const std::byte> frame, std::int64_t now_ns, const Send& send);

  // Lets go of held frames whose time has come.
  void release(std::int64_t now_ns, const Send& send);

  // Whether a frame is held: the caller must call release() soon.
  bool holds_any() const { return !held_.empty(); }
  const FaultCounts& counts() const { return counts_; }

 private:
  struct Held {
    std::uint32_t to;
    std::uint32_t later_frames;  // goes out after so many more, or at until_ns
    std::int64_t until_ns;
    std::vector<std::byte> frame;
  };
  bool happens(double rate) { return rate > 0 && std::uniform_real_distribution<>(0, 1)(random_) < rate; }
  void hold(std::uint32_t to, std::span<const std::byte> frame, std::uint32_t later_frames,
            std::int64_t until_ns);

  const FaultRates rates_;
  std::mt19937_64 random_;
  std::vector<Held> held_;
  FaultCounts counts_;
};

}  // namespace orrery::wire
