// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A peer of the wire between hosts as a state machine: authentic frames whose sequence numbers and
// acknowledgements are the fuzzer's, replays, reorderings, frames that changed on the way and frames made
// without the secret, among what this end sends itself. Nothing leaves this process: every frame out is
// dropped. The first byte may say that the rest is a peer's address instead.
#include "emu/base/check.hpp"
#include "emu/base/log.hpp"
#include "emu/wire/ofi_wire.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace orrery;
using namespace orrery::wire;

constexpr AuthKey kSecret{1, 2};
constexpr std::uint64_t kJob = 7;
constexpr std::uint32_t kUs = 10;
constexpr std::uint32_t kPeer = 11;
constexpr ProcessSlot kSlot = 5;
constexpr std::uint16_t kDomain = 7;

// What the wire hands out is checked: each packet once, in the order of its stream.
struct Checker : Sink {
  OfiWire* wire = nullptr;
  std::array<std::uint64_t, kStreams> last{};
  void deliver(const Packet& packet) override {
    const PacketHeader& h = packet.header;
    if (h.verb == Verb::response && h.event_data == 0) return;  // an acknowledgement as an answer
    const int stream = h.verb == Verb::response ? 1 : 0;
    ORRERY_CHECK(h.source == kSlot && h.domain == kDomain, "of another peer");
    ORRERY_CHECK(h.event_data > last[static_cast<std::size_t>(stream)], "twice, or out of order");
    last[static_cast<std::size_t>(stream)] = h.event_data;
    if (stream == 1 || (h.flags & kWantsResponse) == 0) return;
    PacketHeader answer;
    answer.verb = Verb::response;
    answer.domain = kDomain;
    answer.transaction = h.transaction;
    answer.status = static_cast<std::uint8_t>(h.command % 3);
    (void)wire->try_send(kSlot, answer, {});
  }
};

Checker& sink() {
  static Checker checker;
  return checker;
}

// Opened once: null where libfabric has no provider.
OfiWire* the_wire() {
  static OfiWire* const wire = [] {
    log::g_level = log::Level::off;
    OfiWireOptions options;
    options.provider = "auto";
    options.interface = "127.0.0.1";
    options.job = kJob;
    options.secret = kSecret;
    options.rank = kUs;
    options.frame_bytes = 2048;
    options.faults = FaultRates::parse("drop=1").value();
    std::string why;
    auto opened = OfiWire::open(options, sink(), nullptr, &why);
    OfiWire* const made = opened.ok() ? opened.value().release() : nullptr;
    sink().wire = made;
    return made;
  }();
  return wire;
}

struct Bytes {
  std::span<const std::uint8_t> rest;
  std::uint8_t next() {
    if (rest.empty()) return 0;
    const std::uint8_t byte = rest[0];
    rest = rest.subspan(1);
    return byte;
  }
};

std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void fix_sum(std::vector<std::byte>& address) {
  const std::uint32_t sum = crc32c(std::span<const std::byte>(address).subspan(8));
  std::memcpy(address.data() + 4, &sum, sizeof sum);
}

void give(OfiWire& wire, std::span<const std::byte> frame) {
  const std::vector<std::byte> exact(frame.begin(), frame.end());
  ((OfiEvents&)wire).arrived(exact);  // NOLINT: the base is private, and this is what libfabric's events call
}

class Peer {
 public:
  explicit Peer(OfiWire& wire) : wire_(wire) {
    static std::uint64_t lives = 0;
    std::vector<std::byte> address = wire.address();
    const std::uint64_t life = ++lives;
    std::memcpy(address.data() + 8, &life, sizeof life);
    std::memcpy(address.data() + 16, &kPeer, sizeof kPeer);
    fix_sum(address);
    ORRERY_CHECK(wire.add_peer(kSlot, address).ok(), "add_peer");
    key_ = derive_key(kSecret, {kJob, life, word_at(wire.address(), 8), kDomain});
    ack_key_ = derive_key(kSecret, {kJob, life, word_at(wire.address(), 8), 0});
    sink().last = {};
  }

  void step(Bytes& in) {
    const std::uint64_t delivered = wire_.counts().packets_delivered;
    switch (in.next() % 8) {
      case 0:
        return give(wire_, keep(frame(in, key_)));
      case 1:
        return give(wire_, keep(short_frame(in)));
      case 2: {
        std::vector<std::byte> bytes(kHostFrameHeaderBytes);
        FrameHeader h = header(in, FrameKind::ack);
        h.domain = 0;
        h.sequence = 1 + in.next();
        write_frame_header(bytes, h, ack_key_);
        return give(wire_, keep(std::move(bytes)));
      }
      case 3:  // sent once more
        if (!kept_.empty()) give(wire_, kept_[in.next() % kept_.size()]);
        return;
      case 4: {  // changed on the way
        if (kept_.empty()) return;
        std::vector<std::byte> changed = kept_[in.next() % kept_.size()];
        const std::size_t bit = (in.next() * std::size_t{256} + in.next()) % (changed.size() * 8);
        changed[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
        give(wire_, changed);
        break;
      }
      case 5:  // made without the secret
        give(wire_, frame(in, {key_[0], key_[1] ^ 1}));
        break;
      case 6: {  // what this end sends meanwhile
        PacketHeader put;
        put.verb = Verb::put;
        put.domain = kDomain;
        put.flags = kLast | kWantsResponse;
        put.transaction = in.next();
        const std::vector<std::byte> payload(in.next() * std::size_t{16});
        put.length = payload.size();
        (void)wire_.try_send(kSlot, put, payload);
        return;
      }
      default:
        (void)wire_.poll(4);
        (void)wire_.prepare_to_sleep();
        (void)wire_.next_deadline_ns();
        return;
    }
    ORRERY_CHECK(wire_.counts().packets_delivered == delivered, "delivered what is not authentic");
  }

 private:
  FrameHeader header(Bytes& in, FrameKind kind) {
    FrameHeader h;
    h.kind = kind;
    h.job = kJob;
    h.source = kPeer;
    h.target = kUs;
    for (auto& ack : h.acks) ack = {in.next(), std::uint64_t{in.next()} << (in.next() % 60)};
    if (kind == FrameKind::ack) return h;
    h.domain = kDomain;
    h.stream = static_cast<Stream>(in.next() & 1);
    // Mostly the next one.
    const std::uint8_t jump = in.next();
    std::uint64_t& last = sequence_[static_cast<std::size_t>(h.stream)];
    h.sequence = jump < 160 ? ++last : 1 + (last + jump - 200 > last + 60 ? 0 : last + jump - 200);
    return h;
  }
  PacketHeader packet(Bytes& in, const FrameHeader& of, std::uint64_t index) {
    PacketHeader h;
    h.verb = of.stream == Stream::responses ? Verb::response : Verb::put;
    h.flags = static_cast<std::uint16_t>(in.next() & (kLast | kWantsResponse | kAnsweredByAck));
    h.domain = kDomain;
    h.transaction = in.next();
    h.command = in.next();
    h.event_data = of.sequence * 4 + index;
    return h;
  }
  std::vector<std::byte> frame(Bytes& in, const AuthKey& key) {
    FrameHeader h = header(in, FrameKind::data);
    h.packets = in.next() % 3;
    const std::size_t payload = in.next() % 64;
    std::vector<std::byte> bytes(kHostFrameHeaderBytes);
    for (std::uint16_t i = 0; i < h.packets; ++i) {
      const std::size_t at = bytes.size();
      bytes.resize(at + packet_bytes(payload));
      write_packet(std::span(bytes).subspan(at), packet(in, h, i + 1u), std::vector<std::byte>(payload));
    }
    h.body_bytes = static_cast<std::uint32_t>(bytes.size() - kHostFrameHeaderBytes);
    h.body_crc = crc32c(std::span<const std::byte>(bytes).subspan(kHostFrameHeaderBytes));
    write_frame_header(bytes, h, key);
    return bytes;
  }
  std::vector<std::byte> short_frame(Bytes& in) {
    const FrameHeader h = header(in, FrameKind::data);
    std::vector<std::byte> bytes(kShortHostFrameBytes + kShortHostFrameTail);
    const std::vector<std::byte> payload(in.next() % (kShortHostFrameTail + 1));
    bytes.resize(write_short_packet(bytes, packet(in, h, 1), payload));
    seal_short_frame(bytes, h, key_);
    return bytes;
  }
  const std::vector<std::byte>& keep(std::vector<std::byte> bytes) {
    if (kept_.size() == 64) kept_.erase(kept_.begin());
    return kept_.emplace_back(std::move(bytes));
  }

  OfiWire& wire_;
  AuthKey key_{};
  AuthKey ack_key_{};
  std::array<std::uint64_t, kStreams> sequence_{};
  std::vector<std::vector<std::byte>> kept_;
};

// Whatever an address says, the wire goes on.
void address(OfiWire& wire, Bytes in) {
  std::vector<std::byte> bytes(in.rest.size());
  if (!bytes.empty()) std::memcpy(bytes.data(), in.rest.data(), bytes.size());
  if (bytes.size() >= 32) {
    const std::vector<std::byte> ours = wire.address();
    std::copy_n(ours.begin(), 4, bytes.begin());
    std::copy_n(ours.begin() + 20, 12, bytes.begin() + 20);
    // Of its own rank and in its own slot, so that it is no peer of the conversations.
    bytes[16] = std::byte{12};
    bytes[17] = bytes[18] = bytes[19] = std::byte{0};
    fix_sum(bytes);
  }
  (void)address_encrypts(bytes);
  (void)wire.add_peer(6, bytes);
  wire.drop_peer(6, bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  OfiWire* const wire = the_wire();
  if (wire == nullptr || size == 0) return 0;
  Bytes in{std::span(data, size)};
  if (in.next() % 8 == 7) {
    address(*wire, in);
    return 0;
  }
  Peer peer(*wire);
  for (int i = 0; i < 200 && !in.rest.empty(); ++i) peer.step(in);
  return 0;
}
