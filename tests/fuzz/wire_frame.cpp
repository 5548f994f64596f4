// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Frames between hosts. The first byte says how much of the frame the sender got right: nothing; the sums;
// the sums and the tag, so that the packets inside are reached; the same of a short frame, whose tag is its
// sum.
#include "emu/base/check.hpp"
#include "emu/wire/frame.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

using namespace orrery;
using namespace orrery::wire;

constexpr AuthKey kKey{1, 2};

// Reads the frame as OfiWire does.
void receive(std::span<const std::byte> frame) {
  FrameHeader header;
  if (const auto refusal = read_frame_header(frame, header)) {
    ORRERY_CHECK(!refusal_name(*refusal).empty());
    return;
  }
  if (!tag_is_right(frame, kKey) || check_body(frame, header)) return;
  std::uint32_t packets = 0;
  std::uint64_t sum = 0;
  PacketReader reader(frame, 0);
  while (const auto packet = reader.next()) {
    ++packets;
    ORRERY_CHECK(packet->payload.size() == packet->header.payload_bytes &&
                 packet->header.domain == header.domain);
    ORRERY_CHECK(packet->payload.data() + packet->payload.size() <= frame.data() + frame.size());
    for (const std::byte byte : packet->payload) sum += static_cast<std::uint64_t>(byte);
  }
  ORRERY_CHECK(packets == header.packets && reader.done(), "{} of {} packets, sum {}", packets,
               header.packets, sum);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t kind = data[0] % 4;
  // In memory of its own: a read past the end is seen.
  std::vector<std::byte> frame(size - 1);
  if (!frame.empty()) std::memcpy(frame.data(), data + 1, frame.size());
  if (kind == 3 && frame.size() >= kShortHostFrameBytes) {
    const std::span<std::byte> all(frame);
    const std::size_t tag_at = frame.size() - sizeof(std::uint64_t);
    std::memcpy(frame.data(), &kShortHostFrameMagic, sizeof kShortHostFrameMagic);
    frame[4] = std::byte{kHostFrameVersion};
    const std::uint64_t tag = siphash13(kKey, all.first(tag_at));
    std::memcpy(frame.data() + tag_at, &tag, sizeof tag);
  } else if (kind != 0 && frame.size() >= kHostFrameHeaderBytes) {
    const std::span<const std::byte> all(frame);
    const auto put32 = [&](std::size_t at, std::uint32_t value) {
      for (std::size_t i = 0; i < 4; ++i) frame[at + i] = static_cast<std::byte>(value >> (8 * i));
    };
    put32(0, kHostFrameMagic);
    frame[4] = std::byte{kHostFrameVersion};
    put32(28, static_cast<std::uint32_t>(frame.size() - kHostFrameHeaderBytes));
    put32(72, crc32c(all.subspan(kHostFrameHeaderBytes)));
    put32(76, crc32c(all.first(76)));
    if (kind == 2) {
      const std::uint64_t tag = siphash13(kKey, all.first(80));
      put32(80, static_cast<std::uint32_t>(tag));
      put32(84, static_cast<std::uint32_t>(tag >> 32));
    }
  }
  receive(frame);
  return 0;
}
