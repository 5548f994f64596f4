// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/wire/frame_check.hpp"
#include "emu/wire/packet.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

// Frames between hosts, version 3 (docs/wire.md "Between hosts" has the grammar and examples): a header of 88
// bytes and packets behind it, or one short packet and no more than that needs. Little-endian whatever the
// host is. Pure functions on bytes; any thread.
namespace orrery::wire {

// DO NOT CHANGE THE NUMBERS of a version: another layout is another version.
inline constexpr std::uint32_t kHostFrameMagic = 0x4652524f;       // "ORRF" in memory
inline constexpr std::uint32_t kShortHostFrameMagic = 0x5352524f;  // "ORRS"
inline constexpr std::uint8_t kHostFrameVersion = 3;
inline constexpr std::size_t kHostFrameHeaderBytes = 88;
// A short frame without payload and operands, which come before its tag; and how many bytes of them at most.
inline constexpr std::size_t kShortHostFrameBytes = 88;
inline constexpr std::size_t kShortHostFrameTail = 16;
inline constexpr std::size_t kPacketHeaderBytes = 96;
inline constexpr std::size_t kPacketAlign = 8;  // packets begin at multiples of it

enum class FrameKind : std::uint8_t {
  data = 1,  // has a sequence number; no packets at all asks for an acknowledgement
  ack = 2,   // acknowledges and nothing else; its sequence counts the sender's acks to that process
};

// Two streams each way, so that answers never wait behind requests.
enum class Stream : std::uint8_t { requests = 0, responses = 1 };
inline constexpr int kStreams = 2;

// Which frames of a stream have come in.
struct Ack {
  std::uint64_t through = 0;  // all frames up to this one were delivered
  std::uint64_t beyond = 0;   // bit i: through + 1 + i is here too
};

struct FrameHeader {
  FrameKind kind = FrameKind::data;
  Stream stream = Stream::requests;
  std::uint64_t job = 0;
  std::uint32_t source = 0;  // the sender's number in the job
  std::uint32_t target = 0;  // the receiver's
  std::uint16_t domain = 0;  // of every packet in it
  std::uint16_t packets = 0;
  std::uint32_t body_bytes = 0;
  std::uint64_t sequence = 0;  // in its stream, or of an ack among the sender's acks: from 1
  std::array<Ack, kStreams> acks;
  std::uint32_t body_crc = 0;
};

// Why a frame was not taken. Append only: statistics are indexed by it.
enum class Refusal : std::uint8_t {
  truncated,  // shorter than a header
  magic,      // not a frame of ours
  version,    // another version's
  checksum,   // bytes changed on the way
  job,        // another job's
  target,     // for another process
  source,     // from an unknown process
  tag,        // made without the secret, or for another process's incarnation
  malformed,  // authentic, but says what cannot be
  duplicate,  // was here already: a retransmission too many, or a replay
  window,     // further ahead than a sender may go
};
inline constexpr int kRefusals = 11;

// The enumerator's name, for messages ("checksum").
std::string_view refusal_name(Refusal refusal);

// Bytes that a packet takes in a frame.
constexpr std::size_t packet_bytes(std::size_t payload_bytes) {
  return (kPacketHeaderBytes + payload_bytes + kPacketAlign - 1) / kPacketAlign * kPacketAlign;
}

// Writes a packet: header, payload, padding of zeros. `out` has packet_bytes(payload.size());
// header.payload_bytes is taken from `payload`.
void write_packet(std::span<std::byte> out, const PacketHeader& header, std::span<const std::byte> payload);

// The header alone, into kPacketHeaderBytes of `out`, for `payload_bytes` that follow it from elsewhere.
void write_packet_header(std::span<std::byte> out, const PacketHeader& header, std::uint32_t payload_bytes);
// The header that one of the two above wrote.
PacketHeader packet_header_at(std::span<const std::byte> packet);

// Writes the header into the first 88 bytes of `out`, with its checksum and, by `key`, its tag.
// REQUIRES: header.body_crc is the checksum of the body.
void write_frame_header(std::span<std::byte> out, const FrameHeader& header, const AuthKey& key);

// Whether a packet can travel in a short frame: at most 16 bytes of payload and operands, and none of the
// fields that have no place there.
bool fits_short_frame(const PacketHeader& header, std::span<const std::byte> payload);

// Writes the packet's part of a short frame. `out` has kShortHostFrameBytes + kShortHostFrameTail; returns
// how many of them the frame takes. REQUIRES: fits_short_frame().
std::size_t write_short_packet(std::span<std::byte> out, const PacketHeader& header,
                               std::span<const std::byte> payload);

// Writes the rest, and the tag by `key`. What header.acks say beyond `through` is not said.
// REQUIRES: write_short_packet() wrote `frame`, of this length; the header's domain is the packet's, source
// and target are below 2^16.
void seal_short_frame(std::span<std::byte> frame, const FrameHeader& header, const AuthKey& key);

// Reads the header of a frame of either form and checks what needs no key: length, magic, version, the
// header's own checksum, the values of its fields and that `bytes` is as long as it says. Sets `out` only on
// success; a short frame is data with one packet.
std::optional<Refusal> read_frame_header(std::span<const std::byte> bytes, FrameHeader& out);

// Whether the tag of a frame that read_frame_header() accepted was made with `key`.
bool tag_is_right(std::span<const std::byte> bytes, const AuthKey& key);

// Checks the body of an authentic frame: its checksum (a short one's is its tag), and that it is exactly the
// packets that the header counts, each of a known verb, of the frame's domain and stream, with its payload
// inside. After it PacketReader cannot fail.
std::optional<Refusal> check_body(std::span<const std::byte> bytes, const FrameHeader& header);

// Walks the packets of a frame that check_body() accepted.
// Usage: for (PacketReader r(frame, 0); auto packet = r.next();) sink.deliver(*packet);
class PacketReader {
 public:
  // `at`: where to go on, from position(); 0 is the first packet.
  PacketReader(std::span<const std::byte> frame, std::size_t at);
  // The next packet, or nothing. The payload points into the frame.
  std::optional<Packet> next();
  std::size_t position() const { return at_; }
  bool done() const { return at_ >= end_; }

 private:
  std::span<const std::byte> frame_;
  std::size_t at_;
  std::size_t end_;
  bool is_short_;
};

}  // namespace orrery::wire
