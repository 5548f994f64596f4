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

ShortFrame short_frame_of(const PacketHeader& header) {
  ShortFrame frame{};
  frame.verb = header.verb;
  frame.status = header.status;
  frame.flags = header.flags;
  frame.domain = header.domain;
  frame.transaction = header.transaction;
  frame.key_index = header.key_index;
  frame.key_generation = header.key_generation;
  frame.source = header.source;
  frame.address = header.address;
  frame.event_data = header.event_data;
  return frame;
}

RingProducer::RingProducer(std::byte* lane, std::uint32_t lane_bytes)
    : control_(reinterpret_cast<LaneControl*>(lane)),
      data_(lane + kLaneControlBytes),
      data_bytes_(lane_bytes - kLaneControlBytes),
      position_(line_floor(control_->produced.load(std::memory_order_relaxed))),
      seen_head_(line_floor(control_->head.load(std::memory_order_acquire))) {
  ORRERY_CHECK(std::has_single_bit(data_bytes_) && data_bytes_ >= kMinLaneDataBytes, "lane data of {} bytes",
               data_bytes_);
  const std::uint64_t mask = data_bytes_ - 1;
  // What makes no sense is not believed: then it starts at the head.
  if (position_ - seen_head_ >= data_bytes_) position_ = seen_head_;
  // A predecessor may have published one frame more than it counted, and a skip before it.
  for (int frames = 0; frames < 2; ++frames) {
    const auto bytes =
        static_cast<std::uint32_t>(mark_at(data_ + (position_ & mask)).load(std::memory_order_relaxed));
    if (bytes == 0 || bytes % kLineBytes != 0 || position_ + bytes - seen_head_ >= data_bytes_) break;
    position_ += bytes;
  }
  // It may also have died while writing: no line start of the free part may look like a mark.
  zeroed_ = seen_head_ + data_bytes_;
  for (std::uint64_t line = position_; line < zeroed_; line += kLineBytes) zero(line);
  control_->produced.store(position_, std::memory_order_relaxed);
}

void RingProducer::zero(std::uint64_t position) {
  mark_at(data_ + (position & (data_bytes_ - 1))).store(0, std::memory_order_relaxed);
}

// For a frame and the line behind it.
bool RingProducer::has_room(std::uint32_t bytes) {
  const std::uint64_t end = position_ + bytes + kLineBytes;
  if (end - seen_head_ <= data_bytes_) return true;
  // Acquire: the consumer's reads of the lines happen before we write them again.
  seen_head_ = control_->head.load(std::memory_order_acquire);
  return end - seen_head_ <= data_bytes_;
}

// REQUIRES: has_room(bytes).
void RingProducer::publish(std::uint64_t mark, std::uint32_t bytes) {
  const std::uint64_t end = position_ + bytes;
  if (zeroed_ <= end) {
    zero(end);
    zeroed_ = end + kLineBytes;
  }
  // Release: the consumer sees the frame whole, and the zero behind it.
  mark_at(data_ + (position_ & (data_bytes_ - 1))).store(mark, std::memory_order_release);
  position_ = end;
}

// One line never straddles the end, so there is nothing to skip.
bool RingProducer::try_send_line(const ShortFrame& frame, std::span<const std::byte> payload) {
  if (!has_room(kLineBytes)) [[unlikely]]
    return false;
  std::byte* line = data_ + (position_ & (data_bytes_ - 1));
  std::memcpy(line + 8, reinterpret_cast<const std::byte*>(&frame) + 8, sizeof frame - 8);
  line[offsetof(ShortFrame, payload_bytes)] = static_cast<std::byte>(payload.size());
  std::byte* const to = line + offsetof(ShortFrame, payload);
  if (payload.size() == 8)
    std::memcpy(to, payload.data(), 8);
  else if (!payload.empty())
    std::memcpy(to, payload.data(), payload.size());
  publish(make_mark(kShortTag, kLineBytes), kLineBytes);
  control_->produced.store(position_, std::memory_order_relaxed);
  // What the next short frame would otherwise wait for, in the shadow of this one's way.
  if (zeroed_ == position_ + kLineBytes && zeroed_ + kLineBytes - seen_head_ <= data_bytes_) {
    zero(zeroed_);
    zeroed_ += kLineBytes;
  }
  return true;
}

Status RingProducer::try_send(const PacketHeader& header, std::span<const std::byte> payload) {
  if (payload.size() > max_payload()) return Errc::size;
  if (is_short(header, payload))
    return try_send_line(short_frame_of(header), payload) ? Status{} : Status{Errc::not_done};
  const std::uint32_t bytes = frame_bytes(static_cast<std::uint32_t>(payload.size()));
  const auto at = static_cast<std::uint32_t>(position_ & (data_bytes_ - 1));
  const std::uint32_t to_end = data_bytes_ - at;
  const std::uint32_t skip = bytes > to_end ? to_end : 0;
  if (!has_room(bytes + skip)) return Errc::not_done;
  if (skip != 0) publish(make_mark(kSkipTag, skip), skip);
  std::byte* frame = data_ + (position_ & (data_bytes_ - 1));
  std::memcpy(frame + 8, &header, sizeof header);
  // Line starts inside the frame may take any value here: the consumer looks only at the next frame's line.
  if (!payload.empty()) std::memcpy(frame + kFrameOverhead, payload.data(), payload.size());
  publish(make_mark(kFrameTag, bytes), bytes);
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
}

void RingConsumer::consume(std::uint32_t bytes) {
  position_ += bytes;
  // Release: what we read of the frame was read before its room is free.
  control_->head.store(position_, std::memory_order_release);
}

int RingConsumer::poll(Sink& sink, int limit) {
  int delivered = 0;
  // Skips count too: a producer may not keep us here for ever.
  for (int taken = 0; taken < limit && !broken_; ++taken) {
    const std::uint64_t at = position_ & mask_;
    const std::uint64_t mark = mark_at(data_ + at).load(std::memory_order_acquire);
    if (mark == 0) break;
    // The line where the next one will begin is the producer's: it comes while this one is handled.
    prefetch_to_read(data_ + ((at + kLineBytes) & mask_));
    const auto tag = static_cast<std::uint32_t>(mark >> 32);
    const auto bytes = static_cast<std::uint32_t>(mark);
    const bool sane = bytes != 0 && bytes % kLineBytes == 0 && bytes <= mask_ + 1 - at;
    if (sane && tag == kSkipTag) {
      consume(bytes);
      continue;
    }
    if (sane && tag == kShortTag && bytes == kLineBytes) {
      ShortFrame frame;
      std::memcpy(&frame, data_ + at, sizeof frame);
      if (frame.payload_bytes > kShortPayload) {
        refuse();
        break;
      }
      if (!sink.deliver_line(frame)) {
        const Packet packet{header_of(frame), {frame.payload, frame.payload_bytes}};
        sink.deliver(packet);
      }
      consume(bytes);
      ++delivered;
      continue;
    }
    Packet packet;
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
