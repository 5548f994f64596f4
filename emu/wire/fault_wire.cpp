// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/fault_wire.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace orrery::wire {

Result<FaultRates> FaultRates::parse(std::string_view text) {
  FaultRates rates;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const auto equals = word.find('=');
    if (equals == std::string_view::npos) return Errc::invalid_param;
    const std::string_view name = word.substr(0, equals);
    const char* const begin = word.data() + equals + 1;
    const char* const end = word.data() + word.size();
    if (name == "seed") {
      const auto [stop, error] = std::from_chars(begin, end, rates.seed);
      if (error != std::errc{} || stop != end) return Errc::invalid_param;
      continue;
    }
    double* const rate = name == "drop"        ? &rates.drop
                         : name == "corrupt"   ? &rates.corrupt
                         : name == "duplicate" ? &rates.duplicate
                         : name == "reorder"   ? &rates.reorder
                         : name == "delay"     ? &rates.delay
                                               : nullptr;
    if (rate == nullptr) return Errc::invalid_param;
    const auto [stop, error] = std::from_chars(begin, end, *rate);
    if (error != std::errc{} || stop != end || !(*rate >= 0 && *rate <= 1)) return Errc::invalid_param;
  }
  return rates;
}

namespace {
// A reordered frame waits for later ones, but when none come, no longer than this.
constexpr std::int64_t kReorderLimit = 5'000'000;
constexpr std::uint32_t kReorderFrames = 8;
}  // namespace

void FaultWire::hold(std::uint32_t to, std::span<const std::byte> frame, std::uint32_t later_frames,
                     std::int64_t until_ns) {
  held_.push_back({to, later_frames, until_ns, {frame.begin(), frame.end()}});
}

void FaultWire::pass(std::uint32_t to, std::span<const std::byte> frame, std::int64_t now_ns,
                     const Send& send) {
  for (Held& held : held_) {
    if (held.later_frames > 0) --held.later_frames;
  }
  if (happens(rates_.drop)) {
    ++counts_.dropped;
  } else if (happens(rates_.corrupt) && !frame.empty()) {
    ++counts_.corrupted;
    std::vector<std::byte> broken(frame.begin(), frame.end());
    // A bit that is flipped twice is whole again: each one is another.
    for (auto flips = 1 + random_() % 4; flips > 0;) {
      const std::size_t at = random_() % broken.size();
      const std::byte bit = std::byte{1} << (random_() % 8);
      if (((broken[at] ^ frame[at]) & bit) != std::byte{0}) continue;
      broken[at] ^= bit;
      --flips;
    }
    send(to, broken);
  } else if (happens(rates_.duplicate)) {
    ++counts_.duplicated;
    send(to, frame);
    send(to, frame);
  } else if (happens(rates_.reorder)) {
    ++counts_.reordered;
    hold(to, frame, 1 + static_cast<std::uint32_t>(random_() % kReorderFrames), now_ns + kReorderLimit);
  } else if (happens(rates_.delay)) {
    ++counts_.delayed;
    hold(to, frame, UINT32_MAX, now_ns + rates_.delay_ns);
  } else {
    send(to, frame);
  }
  if (!held_.empty()) release(now_ns, send);
}

void FaultWire::release(std::int64_t now_ns, const Send& send) {
  for (std::size_t i = 0; i < held_.size();) {
    if (held_[i].later_frames != 0 && held_[i].until_ns > now_ns) {
      ++i;
      continue;
    }
    // Out of the list first: `send` may come back here.
    const Held ready = std::move(held_[i]);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    send(ready.to, ready.frame);
  }
}

}  // namespace orrery::wire
