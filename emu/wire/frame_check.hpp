// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

// What a frame between hosts is checked with: a checksum against broken bytes, a keyed tag against strangers.
// Pure functions; any thread.
namespace orrery::wire {

// CRC-32C (Castagnoli, as iSCSI and the link layers of the emulated machines' kind use): reflected polynomial
// 0x82f63b78, starting value and final exclusive-or all ones. Uses the processor's instruction where it has
// one. `before`: the checksum of the bytes that come before these, for what lies in pieces.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

// The same from the table, whatever the processor has. For tests, and where there is no instruction.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before = 0);

// A key of SipHash: 16 bytes as two little-endian words.
using AuthKey = std::array<std::uint64_t, 2>;

// SipHash (Aumasson and Bernstein, 2012): 64 bits that cannot be made without the key, however many were
// seen. 2-4 is its authors' careful choice, for keys; 1-3 their fast one, for the tag of each frame.
std::uint64_t siphash24(const AuthKey& key, std::span<const std::byte> bytes);
std::uint64_t siphash13(const AuthKey& key, std::span<const std::byte> bytes);

// The two ends of a frame under a key: a frame that was meant for other ends has another tag.
struct AuthScope {
  std::uint64_t job = 0;
  std::uint64_t from = 0;  // incarnation of the sender: a number that each process draws once
  std::uint64_t to = 0;    // incarnation of the receiver
  std::uint16_t domain = 0;
};

// The key of frames in `scope`, derived from the job's secret.
AuthKey derive_key(const AuthKey& secret, const AuthScope& scope);

}  // namespace orrery::wire
