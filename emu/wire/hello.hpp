// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/wire/frame_check.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

// What two processes say to each other before a connection carries frames (docs/wire.md "Connections"): a
// hello by the one that connects, an answer by the other one. Each proves that its maker has the job's
// secret. Little-endian whatever the host is. Pure functions on bytes; any thread.
namespace orrery::wire {

inline constexpr std::size_t kHelloBytes = 64;
inline constexpr std::size_t kHelloAnswerBytes = 32;

struct Hello {
  std::uint64_t job = 0;
  std::uint32_t source = 0;  // the sender's number in the job
  std::uint32_t target = 0;  // the receiver's
  std::uint64_t from = 0;    // the sender's incarnation
  std::uint64_t to = 0;      // the receiver's
  std::uint64_t nonce = 0;   // drawn for this hello
  std::uint64_t counter =
      0;  // of the sender's hellos, from 1: a hello that was taken once is not taken again
};

struct HelloAnswer {
  std::uint64_t nonce = 0;    // the hello's
  std::uint64_t counter = 0;  // of the answering process's own hellos: those up to it are void
};

// The key of hellos and answers that `scope.from` sends to `scope.to`. It is no frame's key, whatever the
// domain.
AuthKey hello_key(const AuthKey& secret, const AuthScope& scope);

std::array<std::byte, kHelloBytes> write_hello(const Hello& hello, const AuthKey& key);
// Nothing when the bytes are no hello: length, magic, version. Whether it is authentic is another question.
std::optional<Hello> read_hello(std::span<const std::byte> bytes);
// Whether a hello that read_hello() accepted was made with `key`.
bool hello_is_right(std::span<const std::byte> bytes, const AuthKey& key);

std::array<std::byte, kHelloAnswerBytes> write_hello_answer(const HelloAnswer& answer, const AuthKey& key);
// Nothing when the bytes are no answer made with `key`.
std::optional<HelloAnswer> read_hello_answer(std::span<const std::byte> bytes, const AuthKey& key);

}  // namespace orrery::wire
