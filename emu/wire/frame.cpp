// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/frame.hpp"

#include <bit>
#include <cstring>

namespace orrery::wire {

namespace {

// Where the fields lie; the rest follows in the writer and the reader, which share this order.
constexpr std::size_t kHeaderCrcAt = 76;
constexpr std::size_t kTagAt = 80;

template <typename T>
T swapped_if_big(T value) {
  if constexpr (std::endian::native == std::endian::big && sizeof(T) > 1) {
    T out = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      out = static_cast<T>(out << 8 | (value & 0xff));
      value = static_cast<T>(value >> 8);
    }
    return out;
  }
  return value;
}

// Writes fields one after the other.
class Writer {
 public:
  explicit Writer(std::byte* at) : at_(at) {}
  template <typename T>
  Writer& put(T value) {
    value = swapped_if_big(value);
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
    return *this;
  }
  Writer& zeros(std::size_t count) {
    std::memset(at_, 0, count);
    at_ += count;
    return *this;
  }

 private:
  std::byte* at_;
};

class Reader {
 public:
  explicit Reader(const std::byte* at) : at_(at) {}
  template <typename T>
  T get() {
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return swapped_if_big(value);
  }

 private:
  const std::byte* at_;
};

bool is_known(Verb verb) { return (verb >= Verb::put && verb <= Verb::release) || verb == Verb::response; }

// The layout of a packet's header is that of the struct, which lanes carry as it lies: where the processor is
// little-endian it is copied.
constexpr bool kAsItLies = std::endian::native == std::endian::little;

bool is_zero(const std::uint8_t (&reserved)[3]) { return (reserved[0] | reserved[1] | reserved[2]) == 0; }

// The header of the packet at `at`; false when its reserved bytes are not zero.
bool read_packet_header(const std::byte* at, PacketHeader& h) {
  if constexpr (kAsItLies) {
    std::memcpy(&h, at, sizeof h);
    return is_zero(h.reserved);
  }
  Reader r(at);
  h.verb = static_cast<Verb>(r.get<std::uint8_t>());
  h.command = r.get<std::uint8_t>();
  h.flags = r.get<std::uint16_t>();
  h.source = r.get<std::uint16_t>();
  h.domain = r.get<std::uint16_t>();
  h.transaction = r.get<std::uint32_t>();
  h.payload_bytes = r.get<std::uint32_t>();
  h.key_index = r.get<std::uint16_t>();
  h.key_generation = r.get<std::uint16_t>();
  h.status = r.get<std::uint8_t>();
  for (auto& byte : h.reserved) byte = r.get<std::uint8_t>();
  h.address = r.get<std::uint64_t>();
  h.length = r.get<std::uint64_t>();
  h.offset = r.get<std::uint64_t>();
  h.event_data = r.get<std::uint64_t>();
  for (auto& operand : h.operand) operand = r.get<std::uint64_t>();
  h.aux = r.get<std::uint64_t>();
  h.match_bits = r.get<std::uint64_t>();
  h.part_bytes = r.get<std::uint64_t>();
  return is_zero(h.reserved);
}

}  // namespace

std::string_view refusal_name(Refusal refusal) {
  constexpr std::string_view kNames[kRefusals] = {"truncated", "magic",     "version", "checksum",
                                                  "job",       "target",    "source",  "tag",
                                                  "malformed", "duplicate", "window"};
  return kNames[static_cast<std::size_t>(refusal)];
}

void write_packet_header(std::span<std::byte> out, const PacketHeader& h, std::uint32_t payload_bytes) {
  if constexpr (kAsItLies) {
    PacketHeader as_sent = h;
    as_sent.payload_bytes = payload_bytes;
    for (auto& byte : as_sent.reserved) byte = 0;
    std::memcpy(out.data(), &as_sent, sizeof as_sent);
    return;
  }
  Writer w(out.data());
  w.put(static_cast<std::uint8_t>(h.verb)).put(h.command).put(h.flags).put(h.source).put(h.domain);
  w.put(h.transaction).put(payload_bytes).put(h.key_index).put(h.key_generation);
  w.put(h.status).zeros(sizeof h.reserved).put(h.address).put(h.length).put(h.offset).put(h.event_data);
  w.put(h.operand[0]).put(h.operand[1]).put(h.aux).put(h.match_bits).put(h.part_bytes);
}

void write_packet(std::span<std::byte> out, const PacketHeader& h, std::span<const std::byte> payload) {
  write_packet_header(out, h, static_cast<std::uint32_t>(payload.size()));
  if (!payload.empty()) std::memcpy(out.data() + kPacketHeaderBytes, payload.data(), payload.size());
  const std::size_t end = kPacketHeaderBytes + payload.size();
  std::memset(out.data() + end, 0, packet_bytes(payload.size()) - end);
}

PacketHeader packet_header_at(std::span<const std::byte> packet) {
  PacketHeader header;
  (void)read_packet_header(packet.data(), header);
  return header;
}

void write_frame_header(std::span<std::byte> out, const FrameHeader& h, const AuthKey& key) {
  Writer w(out.data());
  w.put(kHostFrameMagic).put(kHostFrameVersion);
  w.put(static_cast<std::uint8_t>(h.kind)).put(static_cast<std::uint8_t>(h.stream)).zeros(1);
  w.put(h.job).put(h.source).put(h.target).put(h.domain).put(h.packets).put(h.body_bytes).put(h.sequence);
  w.put(h.acks[0].through).put(h.acks[1].through).put(h.acks[0].beyond).put(h.acks[1].beyond);
  w.put(h.body_crc);
  w.put(crc32c(out.first(kHeaderCrcAt)));
  w.put(siphash13(key, out.first(kTagAt)));
}

std::optional<Refusal> read_frame_header(std::span<const std::byte> bytes, FrameHeader& out) {
  if (bytes.size() < kHostFrameHeaderBytes) return Refusal::truncated;
  Reader r(bytes.data());
  if (r.get<std::uint32_t>() != kHostFrameMagic) return Refusal::magic;
  if (r.get<std::uint8_t>() != kHostFrameVersion) return Refusal::version;
  if (Reader(bytes.data() + kHeaderCrcAt).get<std::uint32_t>() != crc32c(bytes.first(kHeaderCrcAt))) {
    return Refusal::checksum;
  }
  FrameHeader h;
  h.kind = static_cast<FrameKind>(r.get<std::uint8_t>());
  h.stream = static_cast<Stream>(r.get<std::uint8_t>());
  const auto reserved = r.get<std::uint8_t>();
  h.job = r.get<std::uint64_t>();
  h.source = r.get<std::uint32_t>();
  h.target = r.get<std::uint32_t>();
  h.domain = r.get<std::uint16_t>();
  h.packets = r.get<std::uint16_t>();
  h.body_bytes = r.get<std::uint32_t>();
  h.sequence = r.get<std::uint64_t>();
  for (auto& ack : h.acks) ack.through = r.get<std::uint64_t>();
  for (auto& ack : h.acks) ack.beyond = r.get<std::uint64_t>();
  h.body_crc = r.get<std::uint32_t>();
  const bool is_data = h.kind == FrameKind::data;
  if ((!is_data && h.kind != FrameKind::ack) || reserved != 0 ||
      (h.stream != Stream::requests && h.stream != Stream::responses) || is_data != (h.sequence != 0) ||
      (!is_data && h.packets != 0) || h.body_bytes != bytes.size() - kHostFrameHeaderBytes) {
    return Refusal::malformed;
  }
  out = h;
  return std::nullopt;
}

bool tag_is_right(std::span<const std::byte> bytes, const AuthKey& key) {
  return Reader(bytes.data() + kTagAt).get<std::uint64_t>() == siphash13(key, bytes.first(kTagAt));
}

std::optional<Refusal> check_body(std::span<const std::byte> bytes, const FrameHeader& header) {
  const std::span<const std::byte> body = bytes.subspan(kHostFrameHeaderBytes);
  if (crc32c(body) != header.body_crc) return Refusal::checksum;
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < header.packets; ++i) {
    if (body.size() - at < kPacketHeaderBytes) return Refusal::malformed;
    PacketHeader packet;
    if (!read_packet_header(body.data() + at, packet) || !is_known(packet.verb) ||
        packet.domain != header.domain ||
        (packet.verb == Verb::response) != (header.stream == Stream::responses) ||
        packet.payload_bytes > body.size() - at - kPacketHeaderBytes ||
        packet_bytes(packet.payload_bytes) > body.size() - at) {
      return Refusal::malformed;
    }
    at += packet_bytes(packet.payload_bytes);
  }
  if (at != body.size()) return Refusal::malformed;
  return std::nullopt;
}

std::optional<Packet> PacketReader::next() {
  if (done()) return std::nullopt;
  Packet packet;
  (void)read_packet_header(frame_.data() + at_, packet.header);
  packet.payload = frame_.subspan(at_ + kPacketHeaderBytes, packet.header.payload_bytes);
  at_ += packet_bytes(packet.header.payload_bytes);
  return packet;
}

}  // namespace orrery::wire
