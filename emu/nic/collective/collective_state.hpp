// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/state/nic_state.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

// The collective engine's part of the segment: the virtual channel elements (VCEs) that a process owns. A VCE
// is one node of a reduction tree. Its children, PEs and other VCEs, each have slots of their own in it, and
// a child's contribution is the only thing that is ever written there:
//
//   slot (lane, parity, child):  pair[0..3] = {tag, word}
//     words: operand 1, operand 2, reduction id, meta     tag: 63..48 generation of the VCE | 47..0 turn
//
// A contribution is there when all four tags name its turn; the first tag is written last. What a reduction
// comes to is a pure function of the slots, so each waiter computes it: there is no counter, no claim and no
// lock, and a process may die after any instruction and leave nothing to repair or to wait for.
//
// Lanes and turns: a reduction uses lane (id mod kCeLanes), and takes the lane's next turn. A PE may have one
// reduction outstanding in a lane. It posts turn n + 1 only after turn n is complete for it, and turn n + 1
// completes only when all of the tree have posted it. So when turn n + 2 overwrites turn n, no member of the
// tree reads that any more, and two slots (by parity) are enough.
namespace orrery::nic {

inline constexpr std::uint32_t kVces = 16;        // of one process
inline constexpr std::uint32_t kCeChildren = 32;  // of one VCE
inline constexpr std::uint32_t kCeLanes = 16;     // reductions in flight with different id mod 16

struct alignas(16) CePair {
  std::atomic<std::uint64_t> tag;
  std::atomic<std::uint64_t> word;
};
// Two lines each: the processor fetches lines in pairs, and a neighbour's line is written all the time.
struct alignas(2 * kCacheLine) CeSlot {
  CePair pair[4];
};
static_assert(sizeof(CeSlot) == 128);

enum class VceStage : std::uint8_t { free = 0, created = 1, configured = 2 };

// One edge of a VCE, as its owner configured it: 63 valid | 62 a VCE, else a PE | 61..52 process slot of a
// VCE's owner | 51..48 its VCE | 47..32 which child of that VCE we are | 31..0 NIC address.
namespace ce_edge {
constexpr std::uint64_t make(bool is_vce, std::uint32_t slot, std::uint32_t vce, std::uint32_t child,
                             std::uint32_t address) {
  return 1ull << 63 | static_cast<std::uint64_t>(is_vce) << 62 | std::uint64_t{slot & 0x3ff} << 52 |
         std::uint64_t{vce & 0xf} << 48 | std::uint64_t{child & 0xffff} << 32 | address;
}
constexpr bool valid(std::uint64_t edge) { return edge >> 63 != 0; }
constexpr bool is_vce(std::uint64_t edge) { return (edge >> 62 & 1) != 0; }
constexpr std::uint16_t slot(std::uint64_t edge) { return static_cast<std::uint16_t>(edge >> 52 & 0x3ff); }
constexpr std::uint32_t vce(std::uint64_t edge) { return static_cast<std::uint32_t>(edge >> 48 & 0xf); }
constexpr std::uint32_t child(std::uint64_t edge) { return static_cast<std::uint32_t>(edge >> 32 & 0xffff); }
constexpr std::uint32_t address(std::uint64_t edge) { return static_cast<std::uint32_t>(edge); }
}  // namespace ce_edge

struct VceState {
  // The owner's. control: 63..48 generation | 31..16 domain | 7..0 VceStage; stored last.
  alignas(kCacheLine) std::atomic<std::uint64_t> control;
  std::atomic<std::uint32_t> modes;     // CeModes
  std::atomic<std::uint32_t> children;  // bit i: child i is configured
  std::atomic<std::uint64_t> parent;    // ce_edge, 0 at the root
  // 0, or generation << 16 | CeStatus: no reduction here can complete any more. Owner of this VCE or of a
  // child.
  alignas(kCacheLine) std::atomic<std::uint32_t> broken;
  // Bit i: claims[i] is new to the owner. The claiming process sets it, the owner takes it.
  alignas(kCacheLine) std::atomic<std::uint32_t> new_claims;
  alignas(kCacheLine) std::atomic<std::uint64_t> edges[kCeChildren];  // ce_edge; the owner's
  // The process that joins as child i: generation << 16 | slot, plus 1 << 63. That process.
  alignas(kCacheLine) std::atomic<std::uint64_t> claims[kCeChildren];
  CeSlot slots[kCeLanes][2][kCeChildren];  // child i's line is written for child i alone
  // What the parent's tree came to, when the parent is reached by packets: by lane and parity, as slots. The
  // owner's.
  CeSlot results[kCeLanes][2];
};
static_assert(offsetof(VceState, parent) == 16 && offsetof(VceState, broken) == 64 &&
              offsetof(VceState, new_claims) == 128 && offsetof(VceState, edges) == 192 &&
              offsetof(VceState, claims) == 448 && offsetof(VceState, slots) == 768 &&
              sizeof(VceState) == 768 + 16 * 2 * 33 * 128);

struct CollectiveState {
  VceState vces[kVces];
};

inline CollectiveState& collective_state(const NicView& nic) {
  return nic.unit<CollectiveState, kCollectiveArea>();
}

namespace vce_control {
constexpr std::uint64_t make(std::uint16_t generation, std::uint16_t domain, VceStage stage) {
  return std::uint64_t{generation} << 48 | std::uint64_t{domain} << 16 | static_cast<std::uint64_t>(stage);
}
constexpr std::uint16_t generation(std::uint64_t word) { return static_cast<std::uint16_t>(word >> 48); }
constexpr std::uint16_t domain(std::uint64_t word) { return static_cast<std::uint16_t>(word >> 16); }
constexpr VceStage stage(std::uint64_t word) { return static_cast<VceStage>(word & 0xff); }
}  // namespace vce_control

namespace ce_tag {
constexpr std::uint64_t kTurns = (1ull << 48) - 1;
constexpr std::uint64_t make(std::uint16_t generation, std::uint64_t turn) {
  return std::uint64_t{generation} << 48 | (turn & kTurns);
}
// The turn that a tag names for a VCE of that generation; 0 when it is none of its.
constexpr std::uint64_t turn(std::uint64_t tag, std::uint16_t generation) {
  return tag >> 48 == generation ? tag & kTurns : 0;
}
}  // namespace ce_tag

}  // namespace orrery::nic
