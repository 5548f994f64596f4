// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/job/host_directory.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

// The two records that pass over a descriptor socket, one each way, little-endian, version 1:
//
//   request, 40 bytes                          reply, 24 bytes, with the descriptors as SCM_RIGHTS
//   0  u32 magic "ORQ1"                        0  u32 magic "ORA1"
//   4  u16 version                             4  u16 version
//   6  u16 wanted (Wanted)                     6  u16 kinds: bit k set = descriptor of kind k follows
//   8  u64 job id                              8  u64 job id
//   16 u32 process index                       16 u64 the process's reply nonce (0 for a directory)
//   20 u32 process generation
//   24 u64 the process's request nonce
//   32 u64 the directory's secret
//
// A request for the directory itself carries zeros from 8 on: the asker does not know better yet. One for an
// end of the PMI-1 wire (to `orrery run`) has the asker's rank as process index, and zeros else.
namespace orrery::job {

enum class Wanted : std::uint16_t { descriptors = 1, directory = 2, pmi = 3 };

struct WireupRequest {
  Wanted wanted = Wanted::descriptors;
  std::uint64_t job_id = 0;
  ProcessRef process;
  std::uint64_t request_nonce = 0;
  std::uint64_t secret = 0;
};

struct WireupReply {
  std::uint16_t kinds = 0;
  std::uint64_t job_id = 0;
  std::uint64_t reply_nonce = 0;
};

inline constexpr std::size_t kRequestBytes = 40;
inline constexpr std::size_t kReplyBytes = 24;
inline constexpr std::uint16_t kDirectoryKind = 1u << 15;  // bit of WireupReply::kinds for a directory
inline constexpr std::uint16_t kPmiKind = 1u << 14;        // the same for an end of the PMI-1 wire

std::array<std::byte, kRequestBytes> encode(const WireupRequest& request);
std::array<std::byte, kReplyBytes> encode(const WireupReply& reply);

// Errors: corrupt (length, magic, version, or a field out of range).
Result<WireupRequest> decode_request(std::span<const std::byte> bytes);
Result<WireupReply> decode_reply(std::span<const std::byte> bytes);

}  // namespace orrery::job
