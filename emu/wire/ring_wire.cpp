// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/ring_wire.hpp"

#include "emu/base/check.hpp"
#include "emu/base/prefetch.hpp"

#include <bit>
#include <cstring>

namespace orrery::wire {

namespace {

std::atomic_ref<std::uint64_t> mark_at(std::byte* line) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(line));
}

// Positions count whole lines; one that comes from a peer is made to.
constexpr std::uint64_t line_floor(std::uint64_t position) {
  return position & ~std::uint64_t{kLineBytes - 1};
}

constexpr std::uint64_t make_mark(std::uint32_t tag, std::uint32_t bytes) {
  return static_cast<std::uint64_t>(tag) << 32 | bytes;
}

// Whether a ShortFrame says all of it.
bool is_short(const PacketHeader& h, std::span<const std::byte> payload) {
  const bool kind = h.verb == Verb::response ||
                    ((h.verb == Verb::put || h.verb == Verb::cq_write) && h.length == payload.size());
  return kind && payload.size() <= kShortPayload && h.offset == 0 && h.command == 0 &&
         (h.operand[0] | h.operand[1] | h.aux | h.match_bits) == 0;
}

PacketHeader header_of(const ShortFrame& frame) {
  PacketHeader header;
  header.verb = frame.verb;
  header.status = frame.status;
  header.flags = frame.flags;
  header.source = frame.source;
  header.domain = frame.domain;
  header.transaction = frame.transaction;
  header.payload_bytes = frame.payload_bytes;
  header.key_index = frame.key_index;
  header.key_generation = frame.key_generation;
  header.address = frame.address;
  header.length = frame.payload_bytes;
  header.part_bytes = frame.payload_bytes;
  header.event_data = frame.event_data;
  return header;
}

}  // namespace

RingProducer::RingProducer(std::byte* lane, std::uint32_t lane_bytes)
    : control_(reinterpret_cast<LaneControl*>(lane)),
      data_(lane + kLaneControlBytes),
      data_bytes_(lane_bytes - kLaneControlBytes),
      position_(line_floor(control_->produced.load(std::memory_order_relaxed))),
      seen_head_(line_floor(control_->head.load(std::memory_order_acquire))) {
  ORRERY_CHECK(std::has_single_bit(data_bytes_) && data_bytes_ >= kMinLaneDataBytes, "lane data of {} bytes",
               data_bytes_);
  const std::uint64_t mask = data_bytes_ - 1;
  if (position_ < seen_head_) position_ = seen_head_;
  // A predecessor may have published one frame more than it counted, and a skip before it. The consumer may
  // be taking them out right now.
  for (int frames = 0; frames < 2;) {
    // Acquire: who sees the consumer's zero also sees where it is going.
    const auto bytes =
        static_cast<std::uint32_t>(mark_at(data_ + (position_ & mask)).load(std::memory_order_acquire));
    const std::uint64_t consumed = line_floor(control_->consuming.load(std::memory_order_relaxed));
    if (bytes == 0 && consumed > position_ && consumed - position_ <= data_bytes_) {
      position_ = consumed;
      ++frames;
      continue;
    }
    if (bytes == 0 || bytes % kLineBytes != 0 || position_ + bytes - seen_head_ > data_bytes_) break;
    position_ += bytes;
    ++frames;
  }
  // It may also have died while writing: no line start of the free part may look like a mark.
  for (std::uint64_t line = position_; line < seen_head_ + data_bytes_; line += kLineBytes) {
    mark_at(data_ + (line & mask)).store(0, std::memory_order_relaxed);
  }
  control_->produced.store(position_, std::memory_order_relaxed);
}

bool RingProducer::has_room(std::uint32_t bytes) {
  if (position_ + bytes - seen_head_ <= data_bytes_) return true;
  // Acquire: the consumer's zeroing of the lines happens before we write them again.
  seen_head_ = control_->head.load(std::memory_order_acquire);
  return position_ + bytes - seen_head_ <= data_bytes_;
}

// One line never straddles the end, so there is nothing to skip.
Status RingProducer::try_send_short(const PacketHeader& header, std::span<const std::byte> payload) {
  if (!has_room(kLineBytes)) return Errc::not_done;
  std::byte* line = data_ + (position_ & (data_bytes_ - 1));
  ShortFrame frame{};
  frame.verb = header.verb;
  frame.status = header.status;
  frame.payload_bytes = static_cast<std::uint8_t>(payload.size());
  frame.flags = header.flags;
  frame.domain = header.domain;
  frame.transaction = header.transaction;
  frame.key_index = header.key_index;
  frame.key_generation = header.key_generation;
  frame.source = header.source;
  frame.address = header.address;
  frame.event_data = header.event_data;
  if (!payload.empty()) std::memcpy(frame.payload, payload.data(), payload.size());
  std::memcpy(line + 8, reinterpret_cast<const std::byte*>(&frame) + 8, sizeof frame - 8);
  // Release: the consumer sees the frame whole.
  mark_at(line).store(make_mark(kShortTag, kLineBytes), std::memory_order_release);
  position_ += kLineBytes;
  control_->produced.store(position_, std::memory_order_relaxed);
  // The consumer wrote the next frame's line last: fetching it now saves the next send that wait.
  prefetch_to_write(data_ + (position_ & (data_bytes_ - 1)));
  return {};
}

Status RingProducer::try_send(const PacketHeader& header, std::span<const std::byte> payload) {
  if (payload.size() > max_payload()) return Errc::size;
  if (is_short(header, payload)) return try_send_short(header, payload);
  const std::uint32_t bytes = frame_bytes(static_cast<std::uint32_t>(payload.size()));
  const auto at = static_cast<std::uint32_t>(position_ & (data_bytes_ - 1));
  const std::uint32_t to_end = data_bytes_ - at;
  const std::uint32_t skip = bytes > to_end ? to_end : 0;
  if (!has_room(bytes + skip)) return Errc::not_done;
  if (skip != 0) {
    mark_at(data_ + at).store(make_mark(kSkipTag, skip), std::memory_order_release);
    position_ += skip;
  }
  std::byte* frame = data_ + (position_ & (data_bytes_ - 1));
  std::memcpy(frame + 8, &header, sizeof header);
  // Line starts inside the frame may take any value here: the consumer looks only at the next frame's line.
  if (!payload.empty()) std::memcpy(frame + kFrameOverhead, payload.data(), payload.size());
  // Release: the consumer sees the frame whole.
  mark_at(frame).store(make_mark(kFrameTag, bytes), std::memory_order_release);
  position_ += bytes;
  control_->produced.store(position_, std::memory_order_relaxed);
  return {};
}

RingConsumer::RingConsumer(std::byte* lane, std::uint32_t lane_bytes)
    : control_(reinterpret_cast<LaneControl*>(lane)),
      data_(lane + kLaneControlBytes),
      mask_(lane_bytes - kLaneControlBytes - 1),
      position_(line_floor(control_->head.load(std::memory_order_relaxed))) {
  ORRERY_CHECK(std::has_single_bit(mask_ + 1) && mask_ + 1 >= kMinLaneDataBytes, "lane data of {} bytes",
               mask_ + 1);
  // A predecessor that died while it took a frame out: the frame is out.
  const std::uint64_t consuming = line_floor(control_->consuming.load(std::memory_order_relaxed));
  if (consuming > position_ && consuming - position_ <= mask_ + 1) {
    consume(static_cast<std::uint32_t>(consuming - position_));
  }
}

void RingConsumer::consume(std::uint32_t bytes) {
  control_->consuming.store(position_ + bytes, std::memory_order_relaxed);
  for (std::uint32_t line = 0; line < bytes; line += kLineBytes) {
    // Release: a successor of the producer that sees this zero sees `consuming`.
    mark_at(data_ + ((position_ + line) & mask_)).store(0, std::memory_order_release);
  }
  position_ += bytes;
  // Release: the zeroes above are visible before the room is.
  control_->head.store(position_, std::memory_order_release);
}

int RingConsumer::poll(Sink& sink, int limit) {
  int delivered = 0;
  // Skips count too: a producer may not keep us here for ever.
  for (int taken = 0; taken < limit && !broken_; ++taken) {
    const std::uint64_t at = position_ & mask_;
    const std::uint64_t mark = mark_at(data_ + at).load(std::memory_order_acquire);
    if (mark == 0) break;
    const auto tag = static_cast<std::uint32_t>(mark >> 32);
    const auto bytes = static_cast<std::uint32_t>(mark);
    const bool sane = bytes != 0 && bytes % kLineBytes == 0 && bytes <= mask_ + 1 - at;
    if (sane && tag == kSkipTag) {
      consume(bytes);
      continue;
    }
    Packet packet;
    if (sane && tag == kShortTag && bytes == kLineBytes) {
      ShortFrame frame;
      std::memcpy(&frame, data_ + at, sizeof frame);
      if (frame.payload_bytes > kShortPayload) {
        refuse();
        break;
      }
      packet.header = header_of(frame);
      packet.payload = {frame.payload, frame.payload_bytes};
      sink.deliver(packet);
      consume(bytes);
      ++delivered;
      continue;
    }
    if (sane && tag == kFrameTag && bytes >= frame_bytes(0)) {
      std::memcpy(&packet.header, data_ + at + 8, sizeof packet.header);
    }
    if (!sane || tag != kFrameTag || bytes < frame_bytes(0) ||
        packet.header.payload_bytes > bytes - kFrameOverhead) {
      refuse();
      break;
    }
    packet.payload = {data_ + at + kFrameOverhead, packet.header.payload_bytes};
    sink.deliver(packet);
    consume(bytes);
    ++delivered;
  }
  return delivered;
}

}  // namespace orrery::wire
