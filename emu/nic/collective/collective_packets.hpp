// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/collective/collective_combine.hpp"
#include "emu/wire/packet.hpp"

#include <cstdint>

// What joins and releases say in a packet (docs/wire.md): between a child and a VCE whose state it cannot
// map.
//   join     a contribution of a child to the VCE's next reduction in a lane; or news of the child itself
//   release  what the reduction came to, to the child that contributed
namespace orrery::nic::ce_packet {

// What waits for the release of a join, in the words of the child: which of its records, or of its VCEs.
// DO NOT CHANGE THE LAYOUT: it is on the wire. 63 a VCE | 62..48 generation or serial number | 15..0 index.
struct Token {
  bool is_vce = false;
  std::uint16_t generation = 0;  // 15 bits of it
  std::uint16_t index = 0;
};
constexpr std::uint64_t token(const Token& t) {
  return static_cast<std::uint64_t>(t.is_vce) << 63 | std::uint64_t{t.generation & 0x7fffu} << 48 | t.index;
}
constexpr Token token_of(std::uint64_t word) {
  return {word >> 63 != 0, static_cast<std::uint16_t>(word >> 48 & 0x7fff), static_cast<std::uint16_t>(word)};
}

// Turns of a join besides numbers from 1.
inline constexpr std::uint64_t kNextTurn = 0;         // of a PE: the one after its last
inline constexpr std::uint64_t kNoTurn = UINT64_MAX;  // no contribution: the child tells its name
// In the first operand of a join with kNoTurn, above an instance: the VCE is meant only if its owner has
// opened that instance.
inline constexpr std::uint64_t kOfInstance = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kBroken =
    UINT64_MAX - 1;  // nothing below the child can complete: aux says why

struct Join {
  std::uint16_t domain = 0;
  std::uint32_t vce = 0;    // of the target
  std::uint32_t child = 0;  // of that VCE
  std::uint64_t turn = kNextTurn;
  CeValue value;
  Token from;
};
wire::PacketHeader header_of(const Join& join);
Join join_of(const wire::PacketHeader& header);

struct Release {
  std::uint64_t turn = 0;
  std::uint32_t lane = 0;
  CeValue value;
  Token to;
};
wire::PacketHeader header_of(const Release& release);
Release release_of(const wire::PacketHeader& header);

}  // namespace orrery::nic::ce_packet
