// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/frame.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string_view>
#include <vector>

namespace orrery::wire {
namespace {

using Bytes = std::vector<std::byte>;

constexpr AuthKey kSecret{0x0706050403020100, 0x0f0e0d0c0b0a0908};
constexpr AuthScope kScope{.job = 0x1122334455667788, .from = 0xaaaa, .to = 0xbbbb, .domain = 7};

Bytes bytes_of(std::string_view text) {
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

struct Part {
  PacketHeader header;
  Bytes payload;
};

Bytes make_frame(const std::vector<Part>& parts, FrameHeader header = {}) {
  header.job = kScope.job;
  header.source = 3;
  header.target = 4;
  header.domain = kScope.domain;
  header.packets = static_cast<std::uint16_t>(parts.size());
  if (header.sequence == 0) header.sequence = 1;
  Bytes frame(kHostFrameHeaderBytes);
  for (const Part& part : parts) {
    const std::size_t at = frame.size();
    frame.resize(at + packet_bytes(part.payload.size()), std::byte{0xee});
    write_packet(std::span(frame).subspan(at), part.header, part.payload);
  }
  const auto body = std::span<const std::byte>(frame).subspan(kHostFrameHeaderBytes);
  header.body_bytes = static_cast<std::uint32_t>(body.size());
  header.body_crc = crc32c(body);
  write_frame_header(frame, header, derive_key(kSecret, kScope));
  return frame;
}

Part put_of_eight() {
  Part put;
  put.header.verb = Verb::put;
  put.header.flags = kWantsRemoteEvent | kWantsResponse | kLast;
  put.header.domain = 7;
  put.header.transaction = 0x400;
  put.header.key_index = 5;
  put.header.key_generation = 1;
  put.header.address = 0x7f0000001010;
  put.header.length = 8;
  put.header.event_data = 0x2a;
  put.header.part_bytes = 8;
  for (int i = 1; i <= 8; ++i) put.payload.push_back(static_cast<std::byte>(i * 0x11));
  return put;
}

Bytes make_short_frame(const Part& part, FrameHeader header = {}) {
  header.job = kScope.job;
  header.source = 3;
  header.target = 4;
  header.stream = part.header.verb == Verb::response ? Stream::responses : Stream::requests;
  if (header.sequence == 0) header.sequence = 1;
  EXPECT_TRUE(fits_short_frame(part.header, part.payload));
  Bytes frame(kShortHostFrameBytes + kShortHostFrameTail, std::byte{0xee});
  frame.resize(write_short_packet(frame, part.header, part.payload));
  seal_short_frame(frame, header, derive_key(kSecret, kScope));
  return frame;
}

std::optional<Refusal> verdict(const Bytes& frame) {
  FrameHeader header;
  if (const auto refusal = read_frame_header(frame, header)) return refusal;
  if (!tag_is_right(frame, derive_key(kSecret, kScope))) return Refusal::tag;
  return check_body(frame, header);
}

TEST(FrameCheck, Crc32cIsTheOneOfTheStandards) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  // RFC 3720, B.4: 32 bytes of zeros, of ones.
  EXPECT_EQ(crc32c(Bytes(32, std::byte{0})), 0x8a9136aau);
  EXPECT_EQ(crc32c(Bytes(32, std::byte{0xff})), 0x62a8ab43u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(FrameCheck, InstructionAndTableAgreeAtEveryLength) {
  std::mt19937_64 random(11);
  Bytes bytes(20000);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  for (std::size_t size = 0; size < 200; ++size) {
    const auto part = std::span<const std::byte>(bytes).subspan(size % 9, size);
    ASSERT_EQ(crc32c(part), crc32c_by_table(part)) << size;
  }
  // Where the way of long input begins and its steps end.
  for (std::size_t size = 1000; size < 1700; ++size) {
    const auto part = std::span<const std::byte>(bytes).subspan(size % 9, size);
    ASSERT_EQ(crc32c(part), crc32c_by_table(part)) << size;
  }
  for (const std::size_t size : {3071u, 3072u, 3073u, 6144u, 9215u, 9216u, 19999u}) {
    const auto part = std::span<const std::byte>(bytes).first(size);
    ASSERT_EQ(crc32c(part), crc32c_by_table(part)) << size;
  }
}

TEST(FrameCheck, ASumOfPiecesIsThatOfTheWhole) {
  std::mt19937_64 random(12);
  Bytes bytes(20000);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  const std::span<const std::byte> whole(bytes);
  // Pieces by each of the ways in which lengths are read.
  for (const std::size_t cut : {0u, 1u, 96u, 1023u, 1024u, 5001u, 19999u, 20000u}) {
    ASSERT_EQ(crc32c(whole.subspan(cut), crc32c(whole.first(cut))), crc32c(whole)) << cut;
    ASSERT_EQ(crc32c_by_table(whole.subspan(cut), crc32c_by_table(whole.first(cut))), crc32c(whole)) << cut;
  }
}

TEST(FrameCheck, SipHashGivesItsAuthorsExample) {
  Bytes text(15);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::byte>(i);
  EXPECT_EQ(siphash24(kSecret, text), 0xa129ca6149be45e5u);
}

// Python's hash() of bytes, which is SipHash-1-3, by PYTHONHASHSEED=0, a key of zeros.
TEST(FrameCheck, FastSipHashGivesWhatPythonsGives) {
  constexpr AuthKey kZeros{};
  EXPECT_EQ(siphash13(kZeros, bytes_of("siphash")), 0x8264ceeccb16bcbeu);
  EXPECT_EQ(siphash13(kZeros, bytes_of("digest-sip_hash")), 0xce31007e34130c0au);
  EXPECT_NE(siphash13(kSecret, bytes_of("siphash")), siphash13(kZeros, bytes_of("siphash")));
}

TEST(FrameCheck, EveryPartOfTheScopeChangesTheKey) {
  const AuthKey key = derive_key(kSecret, kScope);
  for (int part = 0; part < 5; ++part) {
    AuthScope other = kScope;
    AuthKey secret = kSecret;
    if (part == 0) ++other.job;
    if (part == 1) ++other.from;
    if (part == 2) ++other.to;
    if (part == 3) ++other.domain;
    if (part == 4) ++secret[1];
    EXPECT_NE(derive_key(secret, other), key) << part;
  }
}

TEST(Frame, CarriesPacketsUnchanged) {
  std::mt19937_64 random(5);
  std::vector<Part> parts;
  for (const Verb verb : {Verb::put, Verb::get, Verb::amo, Verb::cq_write, Verb::send, Verb::datagram,
                          Verb::message, Verb::credit, Verb::join, Verb::release}) {
    Part part = put_of_eight();
    part.header.verb = verb;
    for (auto* word : {&part.header.address, &part.header.length, &part.header.offset,
                       &part.header.event_data, &part.header.operand[0], &part.header.operand[1],
                       &part.header.aux, &part.header.match_bits, &part.header.part_bytes}) {
      *word = random();
    }
    part.header.command = static_cast<std::uint8_t>(random());
    part.header.status = static_cast<std::uint8_t>(random());
    part.payload.resize(random() % 40, std::byte{9});
    parts.push_back(part);
  }
  FrameHeader sent;
  sent.sequence = 77;
  sent.acks[0] = {5, 0x8000000000000001};
  sent.acks[1] = {6, 2};
  const Bytes frame = make_frame(parts, sent);
  ASSERT_EQ(verdict(frame), std::nullopt);
  FrameHeader header;
  ASSERT_EQ(read_frame_header(frame, header), std::nullopt);
  EXPECT_EQ(header.sequence, 77u);
  EXPECT_EQ(header.acks[0].beyond, 0x8000000000000001u);
  EXPECT_EQ(header.acks[1].through, 6u);
  EXPECT_EQ(header.source, 3u);
  PacketReader reader(frame, 0);
  for (const Part& part : parts) {
    const auto packet = reader.next();
    ASSERT_TRUE(packet);
    PacketHeader expected = part.header;
    expected.payload_bytes = static_cast<std::uint32_t>(part.payload.size());
    EXPECT_EQ(std::memcmp(&packet->header, &expected, sizeof expected), 0);
    EXPECT_EQ(Bytes(packet->payload.begin(), packet->payload.end()), part.payload);
  }
  EXPECT_FALSE(reader.next());
}

TEST(ShortFrame, CarriesAPacketUnchanged) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 2000; ++i) {
    Part part;
    PacketHeader& h = part.header;
    constexpr Verb kVerbs[] = {Verb::put,  Verb::get,    Verb::amo,     Verb::cq_write,
                               Verb::send, Verb::credit, Verb::release, Verb::response};
    h.verb = kVerbs[random() % std::size(kVerbs)];
    h.command = static_cast<std::uint8_t>(random());
    h.flags = static_cast<std::uint16_t>(random());
    h.domain = kScope.domain;
    h.transaction = static_cast<std::uint32_t>(random());
    h.key_index = static_cast<std::uint16_t>(random());
    h.key_generation = static_cast<std::uint16_t>(random());
    h.status = static_cast<std::uint8_t>(random());
    h.address = random();
    h.length = random() & 0xffff;
    h.event_data = random();
    h.part_bytes = random() & 0xffff;
    const std::size_t operands = random() % 3;
    for (std::size_t j = 0; j < operands; ++j) h.operand[j] = random();
    const std::size_t room = kShortHostFrameTail - 8 * operands;
    part.payload.resize(random() % (room + 1));
    for (auto& byte : part.payload) byte = static_cast<std::byte>(random());
    FrameHeader sent;
    sent.sequence = random() | 1;
    sent.acks[0].through = random();
    sent.acks[1].through = random();
    const Bytes frame = make_short_frame(part, sent);
    ASSERT_EQ(verdict(frame), std::nullopt);
    FrameHeader header;
    ASSERT_EQ(read_frame_header(frame, header), std::nullopt);
    EXPECT_EQ(header.kind, FrameKind::data);
    EXPECT_EQ(header.packets, 1u);
    EXPECT_EQ(header.sequence, sent.sequence);
    EXPECT_EQ(header.acks[0].through, sent.acks[0].through);
    EXPECT_EQ(header.acks[1].through, sent.acks[1].through);
    EXPECT_EQ(header.source, 3u);
    EXPECT_EQ(header.target, 4u);
    PacketReader reader(frame, 0);
    ASSERT_FALSE(reader.done());
    const auto packet = reader.next();
    ASSERT_TRUE(packet);
    PacketHeader expected = h;
    expected.payload_bytes = static_cast<std::uint32_t>(part.payload.size());
    EXPECT_EQ(std::memcmp(&packet->header, &expected, sizeof expected), 0);
    EXPECT_EQ(Bytes(packet->payload.begin(), packet->payload.end()), part.payload);
    EXPECT_TRUE(reader.done());
    EXPECT_FALSE(PacketReader(frame, reader.position()).next());
  }
}

TEST(ShortFrame, IsOnlyForWhatFits) {
  const Part good = put_of_eight();
  EXPECT_TRUE(fits_short_frame(good.header, good.payload));
  EXPECT_TRUE(fits_short_frame(good.header, Bytes(16)));
  EXPECT_FALSE(fits_short_frame(good.header, Bytes(17)));
  const auto with = [&](auto change) {
    PacketHeader header = good.header;
    change(header);
    return fits_short_frame(header, good.payload);
  };
  EXPECT_TRUE(with([](auto& h) { h.operand[0] = 1; }));
  EXPECT_FALSE(with([](auto& h) { h.operand[1] = 1; })) << "8 bytes and two operands";
  EXPECT_FALSE(with([](auto& h) { h.length = 65536; }));
  EXPECT_FALSE(with([](auto& h) { h.part_bytes = 65536; }));
  EXPECT_FALSE(with([](auto& h) { h.offset = 1; }));
  EXPECT_FALSE(with([](auto& h) { h.aux = 1; }));
  EXPECT_FALSE(with([](auto& h) { h.match_bits = 1; }));
}

TEST(ShortFrame, EveryFlippedBitAndEveryOtherLengthIsRefused) {
  const Bytes good = make_short_frame(put_of_eight());
  ASSERT_EQ(verdict(good), std::nullopt);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_NE(verdict(bad), std::nullopt) << "bit " << bit;
  }
  for (std::size_t size = 0; size < good.size(); ++size)
    ASSERT_NE(verdict(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))), std::nullopt);
  Bytes longer = good;
  longer.resize(good.size() + 8);
  EXPECT_EQ(verdict(longer), Refusal::malformed);
}

TEST(ShortFrame, RefusalsNameTheirCause) {
  Bytes frame = make_short_frame(put_of_eight());
  frame[4] = std::byte{kHostFrameVersion + 1};
  EXPECT_EQ(verdict(frame), Refusal::version);
  frame = make_short_frame(put_of_eight());
  frame[64] ^= std::byte{1};
  EXPECT_EQ(verdict(frame), Refusal::tag) << "the tag is the sum, too";
  Part unknown = put_of_eight();
  unknown.header.verb = static_cast<Verb>(63);
  EXPECT_EQ(verdict(make_short_frame(unknown)), Refusal::malformed);
  // An answer among the requests, with a tag that is right.
  frame = make_short_frame(put_of_eight());
  frame[6] = static_cast<std::byte>(Verb::response);
  FrameHeader header;
  header.job = kScope.job;
  header.source = 3;
  header.target = 4;
  header.sequence = 1;
  seal_short_frame(frame, header, derive_key(kSecret, kScope));
  EXPECT_EQ(verdict(frame), Refusal::malformed);
  header.sequence = 0;
  frame = make_short_frame(put_of_eight());
  seal_short_frame(frame, header, derive_key(kSecret, kScope));
  EXPECT_EQ(verdict(frame), Refusal::malformed);
}

std::string hex(const Bytes& bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    text += fmt::format("{}{:02x} ", i % 16 == 0 ? "\n" : "", static_cast<unsigned>(bytes[i]));
  return text;
}

// The examples of docs/wire.md, byte for byte.
TEST(ShortFrame, IsTheExampleOfTheDocument) {
  FrameHeader header;
  header.acks[1] = {2, 0};
  const Bytes frame = make_short_frame(put_of_eight(), header);
  static constexpr unsigned char kExample[] = {
      0x4f, 0x52, 0x52, 0x53, 0x03, 0x00, 0x01, 0x00, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,  // 0x00
      0x03, 0x00, 0x04, 0x00, 0x07, 0x00, 0x08, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // 0x10
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // 0x20
      0x07, 0x00, 0x08, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x05, 0x00, 0x01, 0x00,  // 0x30
      0x10, 0x10, 0x00, 0x00, 0x00, 0x7f, 0x00, 0x00, 0x2a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // 0x40
      0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xaf, 0xc1, 0xd7, 0xeb, 0x35, 0x23, 0x18, 0x63,  // 0x50
  };
  ASSERT_EQ(frame.size(), sizeof kExample) << hex(frame);
  EXPECT_EQ(std::memcmp(frame.data(), kExample, sizeof kExample), 0) << hex(frame);
}

TEST(Frame, IsTheExampleOfTheDocument) {
  FrameHeader header;
  header.acks[1] = {2, 0};
  const Bytes frame = make_frame({put_of_eight()}, header);
  static constexpr unsigned char kExample[] = {
      0x4f, 0x52, 0x52, 0x46, 0x03, 0x01, 0x00, 0x00, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,  // 0x00
      0x03, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x07, 0x00, 0x01, 0x00, 0x68, 0x00, 0x00, 0x00,  // 0x10
      0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // 0x20
      0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // 0x30
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,                                                  // 0x40
      0x42, 0x63, 0x50, 0x9a, 0x3d, 0xae, 0xd1, 0xc4, 0xe9, 0x17, 0x8e, 0x2d, 0x18, 0x7f, 0xb2, 0xab,  // 0x48
      0x01, 0x00, 0x07, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x04, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00,  // 0x58
      0x05, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x10, 0x00, 0x00, 0x00, 0x7f, 0x00, 0x00,  // 0x68
      0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,                                                  // 0x78
  };
  ASSERT_EQ(frame.size(), 192u);
  EXPECT_EQ(std::memcmp(frame.data(), kExample, sizeof kExample), 0) << hex(frame);
  EXPECT_EQ(frame[0xb8], std::byte{0x11});
}

TEST(Frame, EveryFlippedBitIsRefused) {
  const Bytes good = make_frame({put_of_eight(), put_of_eight()});
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_NE(verdict(bad), std::nullopt) << "bit " << bit;
  }
}

TEST(Frame, EveryOtherLengthIsRefused) {
  const Bytes good = make_frame({put_of_eight()});
  for (std::size_t size = 0; size < good.size(); ++size) {
    ASSERT_NE(verdict(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))), std::nullopt)
        << size;
  }
  Bytes longer = good;
  longer.push_back(std::byte{0});
  EXPECT_EQ(verdict(longer), Refusal::malformed);
}

TEST(Frame, RefusalsNameTheirCause) {
  EXPECT_EQ(verdict(Bytes(87)), Refusal::truncated);
  EXPECT_EQ(verdict(bytes_of(std::string(200, 'G'))), Refusal::magic);
  Bytes frame = make_frame({put_of_eight()});
  frame[4] = std::byte{kHostFrameVersion + 1};
  EXPECT_EQ(verdict(frame), Refusal::version);
  frame = make_frame({put_of_eight()});
  frame[30] ^= std::byte{1};
  EXPECT_EQ(verdict(frame), Refusal::checksum);
  frame = make_frame({put_of_eight()});
  frame.back() ^= std::byte{1};
  EXPECT_EQ(verdict(frame), Refusal::checksum);
  frame = make_frame({put_of_eight()});
  frame[80] ^= std::byte{1};
  EXPECT_EQ(verdict(frame), Refusal::tag);
  EXPECT_EQ(refusal_name(Refusal::window), "window");
}

// Authentic, from a peer that has lost its mind: each says something that cannot be.
TEST(Frame, AnAuthenticFrameIsCheckedToo) {
  Part other_domain = put_of_eight();
  other_domain.header.domain = 8;
  EXPECT_EQ(verdict(make_frame({other_domain})), Refusal::malformed);
  Part response = put_of_eight();
  response.header.verb = Verb::response;
  EXPECT_EQ(verdict(make_frame({response})), Refusal::malformed) << "an answer among the requests";
  Part unknown = put_of_eight();
  unknown.header.verb = static_cast<Verb>(63);
  EXPECT_EQ(verdict(make_frame({unknown})), Refusal::malformed);
  FrameHeader bad;
  bad.stream = static_cast<Stream>(2);
  EXPECT_EQ(verdict(make_frame({put_of_eight()}, bad)), Refusal::malformed);
  bad = {};
  bad.kind = FrameKind::ack;
  EXPECT_EQ(verdict(make_frame({put_of_eight()}, bad)), Refusal::malformed)
      << "an acknowledgement with packets";

  // A payload that is longer than the body, with sums that are right.
  Bytes frame = make_frame({put_of_eight()});
  frame[kHostFrameHeaderBytes + 12] = std::byte{0xff};
  FrameHeader header;
  ASSERT_EQ(read_frame_header(frame, header), std::nullopt);
  header.body_crc = crc32c(std::span<const std::byte>(frame).subspan(kHostFrameHeaderBytes));
  write_frame_header(frame, header, derive_key(kSecret, kScope));
  EXPECT_EQ(verdict(frame), Refusal::malformed);
}

}  // namespace
}  // namespace orrery::wire
