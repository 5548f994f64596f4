// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/wire/frame_check.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

// Encrypted frames (docs/wire.md "Encryption"): a head of 24 bytes, the frame by AES-128-GCM, a tag of 16
// bytes that covers both. The cipher is libcrypto's (OpenSSL 3), opened at run time: a job that encrypts
// nothing never loads it.
namespace orrery::wire {

inline constexpr std::size_t kSealHeadBytes = 24;
inline constexpr std::size_t kSealTagBytes = 16;
inline constexpr std::size_t kSealBytes = kSealHeadBytes + kSealTagBytes;

// What stands before the cipher text, as it is.
struct SealHead {
  std::uint32_t source = 0;   // the sender's number in the job
  std::uint32_t target = 0;   // the receiver's
  std::uint64_t counter = 0;  // of the sender's messages to that life of the receiver, from 1: the nonce
};

// Nothing when the bytes are no encrypted frame: length, magic, version.
std::optional<SealHead> read_seal_head(std::span<const std::byte> bytes);

// The key of what `scope.from` sends to `scope.to`. It is no frame's and no hello's key, whatever the domain.
AuthKey seal_key(const AuthKey& secret, const AuthScope& scope);

// One direction between two processes. One thread at a time.
// Usage: auto s = Sealer::open(key, true, &why);  s.value()->seal(head, frame, out);
class Sealer {
 public:
  // `seals`: for seal(); else for unseal(). Errors: unsupported (not built in, or libcrypto.so.3 is not
  // here), no_memory.
  static Result<std::unique_ptr<Sealer>> open(const AuthKey& key, bool seals, std::string* why);
  // Whether open() can succeed here; else `why`.
  static bool is_usable(std::string* why);
  ~Sealer();
  Sealer(const Sealer&) = delete;
  Sealer& operator=(const Sealer&) = delete;

  // Writes `frame` encrypted into `out`, frame.size() + kSealBytes long. A counter is used once for a key.
  bool seal(const SealHead& head, std::span<const std::byte> frame, std::span<std::byte> out);
  // Writes what was encrypted into `out`, bytes.size() - kSealBytes long. False: the bytes were not made with
  // this key, or have changed; then what `out` holds means nothing.
  bool unseal(std::span<const std::byte> bytes, std::span<std::byte> out);

 private:
  explicit Sealer(void* context) : context_(context) {}
  void* const context_;  // libcrypto's
};

}  // namespace orrery::wire
