// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/wire/frame_check.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// What the two ends of a connection say to each other over its socket (docs/cci.md). A connection that shares
// memory says there only what makes, watches and ends it.
namespace orrery::cci {

inline constexpr std::uint32_t kFrameMagic = 0x4943524f;  // "ORCI"
inline constexpr std::uint8_t kFrameVersion = 2;
inline constexpr std::uint32_t kLongestPayload = 256 * 1024;
inline constexpr std::uint32_t kMaxRequestData = 1024;
inline constexpr std::uint32_t kMostSendSize = 65'536;

enum class FrameKind : std::uint8_t {
  connect = 1,    // client: payload Hello, data of the request
  accept = 2,     // server: payload Hello
  reject = 3,     // server
  ready = 4,      // client: a: 1 by shared memory, 0 by this socket
  message = 5,    // payload; a: number of the message, 0 when it is not acknowledged
  ack = 6,        // a: messages up to this number lie in buffers
  busy = 7,       // no buffer is free for the next message
  rma_write = 8,  // payload; a: operation; b: registration; c: offset; flag last
  rma_read = 9,   // a: operation; b: registration; c: offset; payload: length
  rma_data = 10,  // payload; a: operation; c: offset in the operation
  rma_done = 11,  // a: operation; b: cci_status
  ping = 12,
  pong = 13,
  map = 14,     // b: registration, which is to be moved into the memory file
  memory = 15,  // comes with the descriptor of the memory file
};
inline constexpr std::uint16_t kFrameLast = 1;

// 64 bytes, little-endian as the hosts are.
struct FrameHeader {
  std::uint32_t magic = kFrameMagic;
  std::uint8_t version = kFrameVersion;
  FrameKind kind = FrameKind::ping;
  std::uint16_t flags = 0;
  std::uint32_t payload_bytes = 0;
  std::uint32_t generation = 0;  // of the connection, as its receiver numbers it
  std::uint64_t sequence = 0;    // of the frame in its direction, from 1
  std::uint64_t acked = 0;       // as an ack's a
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t c = 0;
  std::uint64_t tag = 0;  // SipHash-1-3 of what is before it, under the key of the direction
};
static_assert(sizeof(FrameHeader) == 64);

// What each side says of itself when a connection is made.
struct Hello {
  std::uint64_t endpoint = 0;  // nonce of the endpoint
  std::uint64_t nonce = 0;     // of this handshake
  std::uint32_t max_send_size = 0;
  std::uint32_t attribute = 0;   // cci_conn_attribute
  std::uint32_t slot = 0;        // of the connection in the sender's segment
  std::uint32_t generation = 0;  // of that slot; frames to it carry it
  std::uint32_t shares = 0;      // 1: the descriptors of segment and doorbell come along
  std::uint32_t data_bytes = 0;  // behind this
  std::uint32_t place = 0;       // of the sender's process in its job, plus 1; 0: it has no clock
  std::uint32_t place_generation = 0;
};
static_assert(sizeof(Hello) == 48);

// The keys of a session: what each side writes its tags with.
struct SessionKeys {
  wire::AuthKey from_client{};
  wire::AuthKey from_server{};
};
SessionKeys session_keys(const Hello& client, const Hello& server);

// Completes a header: magic, tag. `key` null: a frame of the handshake, whose tag is 0.
void seal(FrameHeader* header, const wire::AuthKey* key);

// Cuts a stream of bytes into frames. A value; one direction of one socket.
class FrameReader {
 public:
  void set_key(const wire::AuthKey& key) { key_ = key, keyed_ = true; }
  void set_generation(std::uint32_t generation) { generation_ = generation, generated_ = true; }
  // Looks at the frame that begins at `bytes`. Outcomes: ok (*header is checked, and its payload is there);
  // not_done (more bytes are needed); corrupt (not a frame of this connection: nothing more is believed).
  Errc look(std::span<const std::byte> bytes, FrameHeader* header) const;
  // The frame that look() showed is dealt with.
  void next() { ++sequence_; }

 private:
  wire::AuthKey key_{};
  bool keyed_ = false;
  bool generated_ = false;
  std::uint32_t generation_ = 0;
  std::uint64_t sequence_ = 1;
};

// Checks a Hello and the data behind it. Errors: corrupt.
Errc read_hello(std::span<const std::byte> payload, Hello* hello, std::span<const std::byte>* data);

}  // namespace orrery::cci
