// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/hello.hpp"

namespace orrery::wire {

namespace {

// DO NOT CHANGE THE NUMBERS of a version.
constexpr std::uint32_t kHelloMagic = 0x4852524f;   // "ORRH" in memory
constexpr std::uint32_t kAnswerMagic = 0x5952524f;  // "ORRY"
constexpr std::uint32_t kVersion = 1;

void put(std::span<std::byte> out, std::size_t at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out[at + i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint64_t get(std::span<const std::byte> in, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(in[at + i]) << (8 * i);
  return value;
}

// The tag stands at the end.
void seal(std::span<std::byte> bytes, const AuthKey& key) {
  const std::size_t at = bytes.size() - 8;
  put(bytes, at, siphash24(key, bytes.first(at)), 8);
}

bool seal_is_right(std::span<const std::byte> bytes, const AuthKey& key) {
  const std::size_t at = bytes.size() - 8;
  return get(bytes, at, 8) == siphash24(key, bytes.first(at));
}

bool begins(std::span<const std::byte> bytes, std::size_t size, std::uint32_t magic) {
  return bytes.size() == size && get(bytes, 0, 4) == magic && get(bytes, 4, 4) == kVersion;
}

}  // namespace

AuthKey hello_key(const AuthKey& secret, const AuthScope& scope) {
  return derive_key(derive_key(secret, scope), {.job = kHelloMagic, .from = 0, .to = 0, .domain = 0});
}

std::array<std::byte, kHelloBytes> write_hello(const Hello& hello, const AuthKey& key) {
  std::array<std::byte, kHelloBytes> bytes{};
  put(bytes, 0, kHelloMagic, 4);
  put(bytes, 4, kVersion, 4);
  put(bytes, 8, hello.job, 8);
  put(bytes, 16, hello.source, 4);
  put(bytes, 20, hello.target, 4);
  put(bytes, 24, hello.from, 8);
  put(bytes, 32, hello.to, 8);
  put(bytes, 40, hello.nonce, 8);
  put(bytes, 48, hello.counter, 8);
  seal(bytes, key);
  return bytes;
}

std::optional<Hello> read_hello(std::span<const std::byte> bytes) {
  if (!begins(bytes, kHelloBytes, kHelloMagic)) return std::nullopt;
  return Hello{.job = get(bytes, 8, 8),
               .source = static_cast<std::uint32_t>(get(bytes, 16, 4)),
               .target = static_cast<std::uint32_t>(get(bytes, 20, 4)),
               .from = get(bytes, 24, 8),
               .to = get(bytes, 32, 8),
               .nonce = get(bytes, 40, 8),
               .counter = get(bytes, 48, 8)};
}

bool hello_is_right(std::span<const std::byte> bytes, const AuthKey& key) {
  return bytes.size() == kHelloBytes && seal_is_right(bytes, key);
}

std::array<std::byte, kHelloAnswerBytes> write_hello_answer(const HelloAnswer& answer, const AuthKey& key) {
  std::array<std::byte, kHelloAnswerBytes> bytes{};
  put(bytes, 0, kAnswerMagic, 4);
  put(bytes, 4, kVersion, 4);
  put(bytes, 8, answer.nonce, 8);
  put(bytes, 16, answer.counter, 8);
  seal(bytes, key);
  return bytes;
}

std::optional<HelloAnswer> read_hello_answer(std::span<const std::byte> bytes, const AuthKey& key) {
  if (!begins(bytes, kHelloAnswerBytes, kAnswerMagic) || !seal_is_right(bytes, key)) return std::nullopt;
  return HelloAnswer{.nonce = get(bytes, 8, 8), .counter = get(bytes, 16, 8)};
}

}  // namespace orrery::wire
