// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/pmi_client.hpp"

#include "emu/job/pmi_line.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace orrery::job {

namespace {

constexpr std::size_t kCountDigits = 4;      // of the number of chunks that starts the first value
constexpr std::size_t kMostChunks = 0xffff;  // 48 MB at hydra's limit

std::string chunk_key(std::string_view key, std::size_t chunk) {
  return chunk == 0 ? std::string(key) : fmt::format("{}.{}", key, chunk);
}

}  // namespace

Status PmiClient::put_bytes(std::string_view key, std::string_view bytes) {
  // 4 characters carry 3 bytes; every chunk has the room that the first one has.
  const std::size_t per_chunk = (limits().value - kCountDigits) / 4 * 3;
  const std::size_t chunks = std::max<std::size_t>((bytes.size() + per_chunk - 1) / per_chunk, 1);
  if (chunks > kMostChunks) return Errc::size;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    std::string value = encode_pmi_value(bytes.substr(std::min(chunk * per_chunk, bytes.size()), per_chunk));
    if (chunk == 0) value = fmt::format("{:04x}", chunks) + value;
    const Status stored = put(chunk_key(key, chunk), value);
    if (!stored.ok()) return stored;
  }
  return {};
}

Result<std::string> PmiClient::get_bytes(std::string_view key, int from) {
  const auto first = get(key, from);
  if (!first.ok()) return first.code();
  std::string_view text = first.value();
  std::size_t chunks = 0;
  for (const char c : text.substr(0, kCountDigits)) {
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0) return Errc::corrupt;
    chunks = chunks * 16 + static_cast<std::size_t>(value);
  }
  if (text.size() < kCountDigits || chunks == 0) return Errc::corrupt;
  text.remove_prefix(kCountDigits);
  auto bytes = decode_pmi_value(text);
  if (!bytes.ok()) return bytes.code();
  for (std::size_t chunk = 1; chunk < chunks; ++chunk) {
    const auto next = get(chunk_key(key, chunk), from);
    if (!next.ok()) return next.code() == Errc::no_match ? Errc::corrupt : next.code();
    const auto more = decode_pmi_value(next.value());
    if (!more.ok()) return more.code();
    bytes.value() += more.value();
  }
  return bytes;
}

}  // namespace orrery::job
