// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/cci/frame.hpp"

#include <cstring>

namespace orrery::cci {

namespace {

std::span<const std::byte> tagged(const FrameHeader& header) {
  return std::as_bytes(std::span(&header, 1)).first(offsetof(FrameHeader, tag));
}

}  // namespace

SessionKeys session_keys(const Hello& client, const Hello& server) {
  const wire::AuthKey secret{client.nonce, server.nonce};
  return {
      .from_client = wire::derive_key(secret, {.from = client.endpoint, .to = server.endpoint, .domain = 1}),
      .from_server = wire::derive_key(secret, {.from = server.endpoint, .to = client.endpoint, .domain = 2})};
}

void seal(FrameHeader* header, const wire::AuthKey* key) {
  header->magic = kFrameMagic;
  header->version = kFrameVersion;
  header->tag = key == nullptr ? 0 : wire::siphash13(*key, tagged(*header));
}

Errc FrameReader::look(std::span<const std::byte> bytes, FrameHeader* header) const {
  if (bytes.size() < sizeof(FrameHeader)) return Errc::not_done;
  std::memcpy(header, bytes.data(), sizeof(FrameHeader));
  const auto kind = static_cast<std::uint8_t>(header->kind);
  if (header->magic != kFrameMagic || header->version != kFrameVersion || kind < 1 || kind > 15)
    return Errc::corrupt;
  if (header->payload_bytes > kLongestPayload || header->sequence != sequence_) return Errc::corrupt;
  if (generated_ && header->generation != generation_) return Errc::corrupt;
  const std::uint64_t tag = keyed_ ? wire::siphash13(key_, tagged(*header)) : 0;
  if (header->tag != tag) return Errc::corrupt;
  // Without a key nothing but the handshake is believed.
  if (!keyed_ && header->kind > FrameKind::reject) return Errc::corrupt;
  return bytes.size() - sizeof(FrameHeader) < header->payload_bytes ? Errc::not_done : Errc::ok;
}

Errc read_hello(std::span<const std::byte> payload, Hello* hello, std::span<const std::byte>* data) {
  if (payload.size() < sizeof(Hello)) return Errc::corrupt;
  std::memcpy(hello, payload.data(), sizeof(Hello));
  *data = payload.subspan(sizeof(Hello));
  const bool sane = hello->data_bytes == data->size() && hello->data_bytes <= kMaxRequestData &&
                    hello->nonce != 0 && hello->endpoint != 0 && hello->attribute <= 4 &&
                    hello->max_send_size > 0 && hello->max_send_size <= kMostSendSize && hello->shares <= 1;
  return sane ? Errc::ok : Errc::corrupt;
}

}  // namespace orrery::cci
