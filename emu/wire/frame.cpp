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

// A short frame is words, which are written whole: its tag is made of them at once, and what was stored in
// pieces cannot be loaded whole for a while. Its payload, padded to whole words, and operands lie between the
// fields and the tag.
constexpr std::size_t kTagBytes = 8;
constexpr std::size_t kTailAt = kShortHostFrameBytes - kTagBytes;
enum ShortWord : std::size_t {
  kWhat,
  kJob,
  kWho,
  kSequence,
  kThrough,
  kFlags = 6,
  kName,
  kAddress,
  kEventData
};
static_assert((kEventData + 1) * 8 == kTailAt);

std::uint64_t word_at(std::span<const std::byte> frame, std::size_t word) {
  return Reader(frame.data() + 8 * word).get<std::uint64_t>();
}
void put_word(std::span<std::byte> frame, std::size_t word, std::uint64_t value) {
  Writer(frame.data() + 8 * word).put(value);
}
template <typename T>
constexpr std::uint64_t at_bit(unsigned bit, T value) {
  return static_cast<std::uint64_t>(value) << bit;
}

constexpr std::size_t padded(std::size_t payload_bytes) { return (payload_bytes + 7) / 8 * 8; }

std::size_t operands_of(const PacketHeader& h) { return h.operand[1] != 0 ? 2 : h.operand[0] != 0 ? 1 : 0; }

bool is_short(std::span<const std::byte> frame) {
  return Reader(frame.data()).get<std::uint32_t>() == kShortHostFrameMagic;
}

Verb short_verb(std::span<const std::byte> frame) {
  return static_cast<Verb>(word_at(frame, kWhat) >> 48 & 0xff);
}

// The packet of a short frame whose length was checked.
Packet read_short_packet(std::span<const std::byte> frame) {
  Packet packet;
  PacketHeader& h = packet.header;
  h.verb = short_verb(frame);
  h.command = static_cast<std::uint8_t>(word_at(frame, kWhat) >> 56);
  const std::uint64_t who = word_at(frame, kWho);
  h.domain = static_cast<std::uint16_t>(who >> 32);
  h.payload_bytes = who >> 48 & 0xff;
  h.status = static_cast<std::uint8_t>(who >> 56);
  const std::uint64_t flags = word_at(frame, kFlags);
  h.flags = static_cast<std::uint16_t>(flags);
  h.length = flags >> 16 & 0xffff;
  h.part_bytes = flags >> 32 & 0xffff;
  const std::uint64_t name = word_at(frame, kName);
  h.transaction = static_cast<std::uint32_t>(name);
  h.key_index = static_cast<std::uint16_t>(name >> 32);
  h.key_generation = static_cast<std::uint16_t>(name >> 48);
  h.address = word_at(frame, kAddress);
  h.event_data = word_at(frame, kEventData);
  const std::size_t first = (kTailAt + padded(h.payload_bytes)) / 8;
  const std::size_t operands = flags >> 48 & 0xff;
  for (std::size_t i = 0; i < operands; ++i) h.operand[i] = word_at(frame, first + i);
  packet.payload = frame.subspan(kTailAt, h.payload_bytes);
  return packet;
}

std::optional<Refusal> read_short_header(std::span<const std::byte> bytes, FrameHeader& out) {
  FrameHeader h;
  h.stream = static_cast<Stream>(word_at(bytes, kWhat) >> 40 & 0xff);
  h.job = word_at(bytes, kJob);
  const std::uint64_t who = word_at(bytes, kWho);
  h.source = who & 0xffff;
  h.target = who >> 16 & 0xffff;
  h.domain = static_cast<std::uint16_t>(who >> 32);
  h.sequence = word_at(bytes, kSequence);
  for (std::size_t i = 0; i < kStreams; ++i) h.acks[i].through = word_at(bytes, kThrough + i);
  h.packets = 1;
  const std::uint64_t flags = word_at(bytes, kFlags);
  const std::size_t operands = flags >> 48 & 0xff;
  const std::size_t tail = padded(who >> 48 & 0xff) + 8 * operands;
  if ((h.stream != Stream::requests && h.stream != Stream::responses) || h.sequence == 0 || operands > 2 ||
      flags >> 56 != 0 || tail > kShortHostFrameTail || bytes.size() != kShortHostFrameBytes + tail) {
    return Refusal::malformed;
  }
  out = h;
  return std::nullopt;
}

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

bool fits_short_frame(const PacketHeader& h, std::span<const std::byte> payload) {
  return payload.size() <= kShortHostFrameTail &&
         padded(payload.size()) + 8 * operands_of(h) <= kShortHostFrameTail && h.length <= UINT16_MAX &&
         h.part_bytes <= UINT16_MAX && (h.offset | h.aux | h.match_bits) == 0;
}

std::size_t write_short_packet(std::span<std::byte> out, const PacketHeader& h,
                               std::span<const std::byte> payload) {
  const std::size_t operands = operands_of(h);
  put_word(out, kWhat,
           kShortHostFrameMagic | at_bit(32, kHostFrameVersion) | at_bit(40, h.verb == Verb::response) |
               at_bit(48, h.verb) | at_bit(56, h.command));
  put_word(out, kWho, at_bit(32, h.domain) | at_bit(48, payload.size()) | at_bit(56, h.status));
  put_word(out, kFlags, h.flags | at_bit(16, h.length) | at_bit(32, h.part_bytes) | at_bit(48, operands));
  put_word(out, kName, h.transaction | at_bit(32, h.key_index) | at_bit(48, h.key_generation));
  put_word(out, kAddress, h.address);
  put_word(out, kEventData, h.event_data);
  std::byte tail[kShortHostFrameTail] = {};
  if (payload.size() == 8)  // mostly; without a call
    std::memcpy(tail, payload.data(), 8);
  else if (!payload.empty())
    std::memcpy(tail, payload.data(), payload.size());
  std::memcpy(out.data() + kTailAt, tail, sizeof tail);
  const std::size_t first = (kTailAt + padded(payload.size())) / 8;
  for (std::size_t i = 0; i < operands; ++i) put_word(out, first + i, h.operand[i]);
  return kShortHostFrameBytes + padded(payload.size()) + 8 * operands;
}

void seal_short_frame(std::span<std::byte> frame, const FrameHeader& h, const AuthKey& key) {
  put_word(frame, kJob, h.job);
  const std::uint64_t packets = word_at(frame, kWho) & ~std::uint64_t{0xffffffff};
  put_word(frame, kWho, packets | h.source | at_bit(16, h.target));
  put_word(frame, kSequence, h.sequence);
  for (std::size_t i = 0; i < kStreams; ++i) put_word(frame, kThrough + i, h.acks[i].through);
  const std::size_t tag_at = frame.size() - kTagBytes;
  Writer(frame.data() + tag_at).put(siphash13(key, frame.first(tag_at)));
}

std::optional<Refusal> read_frame_header(std::span<const std::byte> bytes, FrameHeader& out) {
  if (bytes.size() < kHostFrameHeaderBytes) return Refusal::truncated;
  Reader r(bytes.data());
  const auto magic = r.get<std::uint32_t>();
  if (magic != kHostFrameMagic && magic != kShortHostFrameMagic) return Refusal::magic;
  if (r.get<std::uint8_t>() != kHostFrameVersion) return Refusal::version;
  if (magic == kShortHostFrameMagic) return read_short_header(bytes, out);
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
      (h.stream != Stream::requests && h.stream != Stream::responses) || h.sequence == 0 ||
      (!is_data && h.packets != 0) || h.body_bytes != bytes.size() - kHostFrameHeaderBytes) {
    return Refusal::malformed;
  }
  out = h;
  return std::nullopt;
}

bool tag_is_right(std::span<const std::byte> bytes, const AuthKey& key) {
  const std::size_t at = is_short(bytes) ? bytes.size() - kTagBytes : kTagAt;
  return Reader(bytes.data() + at).get<std::uint64_t>() == siphash13(key, bytes.first(at));
}

std::optional<Refusal> check_body(std::span<const std::byte> bytes, const FrameHeader& header) {
  if (is_short(bytes)) {
    const Verb verb = short_verb(bytes);
    if (!is_known(verb) || (verb == Verb::response) != (header.stream == Stream::responses))
      return Refusal::malformed;
    return std::nullopt;
  }
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

PacketReader::PacketReader(std::span<const std::byte> frame, std::size_t at)
    : frame_(frame), at_(at), end_(frame.size()), is_short_(is_short(frame)) {
  if (at_ == 0 && !is_short_) at_ = kHostFrameHeaderBytes;
}

std::optional<Packet> PacketReader::next() {
  if (done()) return std::nullopt;
  if (is_short_) {
    at_ = end_;
    return read_short_packet(frame_);
  }
  Packet packet;
  (void)read_packet_header(frame_.data() + at_, packet.header);
  packet.payload = frame_.subspan(at_ + kPacketHeaderBytes, packet.header.payload_bytes);
  at_ += packet_bytes(packet.header.payload_bytes);
  return packet;
}

}  // namespace orrery::wire
