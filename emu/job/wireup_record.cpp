// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/wireup_record.hpp"

#include "emu/job/descriptors.hpp"

namespace orrery::job {

namespace {

constexpr std::uint32_t kRequestMagic = 0x3151524f;  // "ORQ1"
constexpr std::uint32_t kReplyMagic = 0x3141524f;    // "ORA1"
constexpr std::uint16_t kRecordVersion = 1;
constexpr std::uint16_t kKnownKinds = ((1u << kDescriptorKinds) - 1) | kDirectoryKind | kPmiKind;

template <typename T>
void put(std::byte* at, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    at[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
}
template <typename T>
T get(const std::byte* at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<std::uint64_t>(at[i]) << (8 * i);
  return static_cast<T>(value);
}

}  // namespace

std::array<std::byte, kRequestBytes> encode(const WireupRequest& request) {
  std::array<std::byte, kRequestBytes> bytes{};
  put(&bytes[0], kRequestMagic);
  put(&bytes[4], kRecordVersion);
  put(&bytes[6], static_cast<std::uint16_t>(request.wanted));
  put(&bytes[8], request.job_id);
  put(&bytes[16], request.process.index);
  put(&bytes[20], request.process.generation);
  put(&bytes[24], request.request_nonce);
  put(&bytes[32], request.secret);
  return bytes;
}

std::array<std::byte, kReplyBytes> encode(const WireupReply& reply) {
  std::array<std::byte, kReplyBytes> bytes{};
  put(&bytes[0], kReplyMagic);
  put(&bytes[4], kRecordVersion);
  put(&bytes[6], reply.kinds);
  put(&bytes[8], reply.job_id);
  put(&bytes[16], reply.reply_nonce);
  return bytes;
}

Result<WireupRequest> decode_request(std::span<const std::byte> bytes) {
  if (bytes.size() != kRequestBytes || get<std::uint32_t>(&bytes[0]) != kRequestMagic ||
      get<std::uint16_t>(&bytes[4]) != kRecordVersion) {
    return Errc::corrupt;
  }
  WireupRequest request;
  const auto wanted = get<std::uint16_t>(&bytes[6]);
  if (wanted < static_cast<std::uint16_t>(Wanted::descriptors) ||
      wanted > static_cast<std::uint16_t>(Wanted::pmi)) {
    return Errc::corrupt;
  }
  request.wanted = static_cast<Wanted>(wanted);
  request.job_id = get<std::uint64_t>(&bytes[8]);
  request.process = {get<std::uint32_t>(&bytes[16]), get<std::uint32_t>(&bytes[20])};
  request.request_nonce = get<std::uint64_t>(&bytes[24]);
  request.secret = get<std::uint64_t>(&bytes[32]);
  if (request.process.index >= HostDirectory::kMaxProcesses) return Errc::corrupt;
  return request;
}

Result<WireupReply> decode_reply(std::span<const std::byte> bytes) {
  if (bytes.size() != kReplyBytes || get<std::uint32_t>(&bytes[0]) != kReplyMagic ||
      get<std::uint16_t>(&bytes[4]) != kRecordVersion) {
    return Errc::corrupt;
  }
  const WireupReply reply{get<std::uint16_t>(&bytes[6]), get<std::uint64_t>(&bytes[8]),
                          get<std::uint64_t>(&bytes[16])};
  if ((reply.kinds & ~kKnownKinds) != 0) return Errc::corrupt;
  return reply;
}

}  // namespace orrery::job
