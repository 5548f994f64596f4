// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/wire/frame.hpp"
#include "emu/wire/ofi_endpoint.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

// What one process remembers of the frames to and from another: state only, the rules are OfiWire's.
namespace orrery::wire {

// Frames of one stream that may be in flight, and how far ahead of a gap a receiver keeps them: the bits
// of an Ack. With frames of 64 KiB that is 4 MiB, more than any link here holds.
inline constexpr std::uint64_t kFrameWindow = 64;
// Of long frames fewer are under way, so that they, and the buffers that they come into, stay in the caches
// of both ends: more only wait in the socket's buffers.
inline constexpr std::uint32_t kLongFrameBytes = 16384;
inline constexpr std::uint64_t kLongFrameWindow = 20;
// Fewer yet of those whose payload is read where it lies.
inline constexpr std::uint64_t kHugeFrameBytes = 262'144;
inline constexpr std::uint64_t kHugeFrameWindow = 4;
// Frames of a stream that exist at the sender: in flight, waiting for the window, and the one being
// filled.
inline constexpr std::uint64_t kStreamFrames = 256;

// A frame at its sender, from its first packet to its acknowledgement.
struct TxFrame {
  OfiOperation operation;  // first: sent() finds the frame by it
  std::byte* bytes = nullptr;
  std::byte* sealed = nullptr;                 // room for the frame encrypted; null: nothing is
  std::uint32_t size = kHostFrameHeaderBytes;  // of what lies in `bytes`
  std::uint32_t body_crc = 0;
  // Payload of the only packet, when it lies elsewhere: in the program's memory, or, when retransmitted,
  // in `copy`.
  std::span<const std::byte> in_place;
  std::vector<std::byte> copy;
  std::uint64_t sequence = 0;
  std::int64_t sent_ns = 0;  // last time it was handed to the provider
  std::uint16_t packets = 0;
  std::uint16_t domain = 0;
  bool closed = false;  // takes no more packets
  bool held = false;    // the peer has it, but not one before it
  bool posted = false;  // the provider has it: the bytes must not change
  bool loose = false;   // no caller waits for it: free when the provider is done
  bool asks = false;    // its acknowledgement answers some of its packets
  bool is_short = false;

  // As made, without packets; its buffer stays.
  void start_anew() {
    size = kHostFrameHeaderBytes;
    body_crc = 0;
    in_place = {};
    if (!copy.empty()) copy = {};
    sequence = 0;
    sent_ns = 0;
    packets = domain = 0;
    closed = held = posted = loose = asks = is_short = false;
  }
  // With `in_place`, and what fills it up to whole words.
  std::size_t whole_size() const {
    return size + (in_place.size() + kPacketAlign - 1) / kPacketAlign * kPacketAlign;
  }
  // From now on a payload that lies elsewhere is a copy of ours: the program may change its memory, or give
  // it back, and what is retransmitted does not.
  void keep_payload() {
    if (in_place.empty() || !copy.empty()) return;
    copy.assign(in_place.begin(), in_place.end());
    in_place = copy;
    body_crc = 0;
  }
};

// The frames of a wire that are not in use. Bounded: when it is empty, callers get not_done.
class FramePool {
 public:
  // `encrypts`: the endpoint has twice as many send buffers.
  FramePool(OfiEndpoint& endpoint, std::uint32_t count, bool encrypts) : frames_(count) {
    free_.reserve(count);
    for (std::uint32_t i = count; i-- > 0;) {
      frames_[i].bytes = endpoint.send_buffer(i);
      if (encrypts) frames_[i].sealed = endpoint.send_buffer(count + i);
      free_.push_back(&frames_[i]);
    }
  }
  // A frame without packets, or nullptr.
  TxFrame* take() {
    if (free_.empty()) return nullptr;
    TxFrame* const frame = free_.back();
    free_.pop_back();
    return frame;
  }
  // REQUIRES: the provider does not have it.
  void give(TxFrame* frame) {
    frame->start_anew();
    free_.push_back(frame);
  }
  // Gives it back as soon as the provider allows.
  void drop(TxFrame* frame) {
    if (frame->posted) {
      frame->loose = true;
    } else {
      give(frame);
    }
  }
  std::size_t free() const { return free_.size(); }

 private:
  std::vector<TxFrame> frames_;
  std::vector<TxFrame*> free_;
};

// first <= unsent <= next: [first, unsent) were sent and are not acknowledged, [unsent, next) were not sent
// yet.
struct SendStream {
  std::array<TxFrame*, kStreamFrames> ring{};
  std::uint64_t first = 1;
  std::uint64_t unsent = 1;
  std::uint64_t next = 1;

  TxFrame*& at(std::uint64_t sequence) { return ring[sequence % kStreamFrames]; }
  std::uint64_t outstanding() const { return next - first; }
  // Whether the next frame that was not sent may go. REQUIRES: there is one.
  bool window_is_open() const {
    return unsent - first < window_for(ring[unsent % kStreamFrames]->whole_size());
  }
  static std::uint64_t window_for(std::size_t bytes) {
    return bytes <= kLongFrameBytes   ? kFrameWindow
           : bytes <= kHugeFrameBytes ? kLongFrameWindow
                                      : kHugeFrameWindow;
  }
  TxFrame* open() {
    if (next == unsent) return nullptr;
    TxFrame* const last = at(next - 1);
    return last->closed ? nullptr : last;
  }
};

struct ReceiveStream {
  std::uint64_t delivered = 0;  // sequence of the last frame that the sink has all of
  std::uint64_t present = 0;    // bit i: frame delivered + 1 + i is kept
  std::size_t resume_at = 0;    // how far the first kept frame was delivered
  std::array<std::vector<std::byte>, kFrameWindow> kept;

  bool has(std::uint64_t sequence) const { return (present >> (sequence - delivered - 1) & 1) != 0; }
  std::vector<std::byte>& slot(std::uint64_t sequence) { return kept[sequence % kFrameWindow]; }
  void keep(std::uint64_t sequence, std::span<const std::byte> frame) {
    slot(sequence).assign(frame.begin(), frame.end());
    present |= std::uint64_t{1} << (sequence - delivered - 1);
  }
  void advance() {
    ++delivered;
    present >>= 1;
    resume_at = 0;
  }
};

}  // namespace orrery::wire
