// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/wire/packet.hpp"
#include "emu/wire/ring_layout.hpp"

#include <cstdint>
#include <span>

namespace orrery::wire {

// The short form of a header that has one, without payload.
ShortFrame short_frame_of(const PacketHeader& header);

// The sending end of a lane. One thread at a time (the NIC holds its lane lock).
// Invariants: (1) position_ counts every byte ever produced; (2) position_ + a line - head <= data bytes once
// something was sent; (3) nothing before the frame's mark is visible to the consumer; (4) between calls the
// first words of the lines in [position_, zeroed_) are 0, and position_ < zeroed_.
// Usage: RingProducer to(peer.request_lane(slot), peer.lane_bytes());  to.try_send(header, payload);
class RingProducer {
 public:
  RingProducer() = default;
  // `lane` is zeroed, or left by an earlier process that may have died anywhere in try_send(): what it
  // published stays, what it did not is wiped.
  RingProducer(std::byte* lane, std::uint32_t lane_bytes);

  // Copies one frame into the lane and publishes it with release order. ok, or not_done when there is no room
  // (nothing was written), or size when it could never fit. Does not block.
  Status try_send(const PacketHeader& header, std::span<const std::byte> payload);

  // The same for a frame of one line; `payload` is what it carries, whatever `frame` says of that. False:
  // there is no room. REQUIRES: payload.size() <= kShortPayload.
  bool try_send_line(const ShortFrame& frame, std::span<const std::byte> payload);

  // Largest payload of one frame: an eighth of the ring, so that a full lane still has several in flight.
  std::uint32_t max_payload() const { return max_payload_of(data_bytes_ + kLaneControlBytes); }
  static constexpr std::uint32_t max_payload_of(std::uint32_t lane_bytes) {
    return (lane_bytes - kLaneControlBytes) / 8 - kLineBytes * 2;
  }
  // Bytes of frames that always fit together, wherever the ring wraps.
  // The line behind them, which has to be free, is what a skip never takes.
  static constexpr std::uint32_t sure_room_of(std::uint32_t lane_bytes) {
    return (lane_bytes - kLaneControlBytes) / 8 * 7;
  }

  std::uint64_t position() const { return position_; }
  // How far the consumer has come: what ends at or before this was delivered.
  std::uint64_t consumed() const { return control_->head.load(std::memory_order_acquire); }
  // Whether the consumer refused a frame: nothing that is sent from now on is received.
  bool refused() const { return control_->broken.load(std::memory_order_relaxed) != 0; }

 private:
  bool has_room(std::uint32_t bytes);
  void zero(std::uint64_t position);
  void publish(std::uint64_t mark, std::uint32_t bytes);

  LaneControl* control_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint32_t data_bytes_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t seen_head_ = 0;
  std::uint64_t zeroed_ = 0;
};

// The receiving end. One thread at a time. Everything read from the lane is checked; a frame that makes no
// sense stops the lane for good (its producer is broken or hostile) and is counted.
class RingConsumer {
 public:
  RingConsumer() = default;
  RingConsumer(std::byte* lane, std::uint32_t lane_bytes);

  // Whether a frame is waiting. One load; any thread of the receiver.
  bool ready() const { return holds_frame(next()); }
  // Where the next frame will begin, for holds_frame().
  const std::byte* next() const { return data_ + (position_ & mask_); }
  // Whether one begins there.
  static bool holds_frame(const std::byte* line) {
    auto* const mark = reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(line));
    return std::atomic_ref<std::uint64_t>(*mark).load(std::memory_order_acquire) != 0;
  }

  // Takes out up to `limit` frames, skips among them. Returns how many it delivered. The payload spans point
  // into the lane and live for the call of deliver.
  int poll(Sink& sink, int limit);

  bool broken() const { return broken_; }
  // Takes nothing more, and lets the producer know.
  void refuse() {
    broken_ = true;
    control_->broken.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  void consume(std::uint32_t bytes);

  LaneControl* control_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint64_t mask_ = 0;
  std::uint64_t position_ = 0;
  bool broken_ = false;
};

}  // namespace orrery::wire
