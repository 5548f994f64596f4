// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/unique_fd.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

// The shared memory of one endpoint: what peers of the same user and host write into when they send to it.
// The owner makes it, and hands its descriptor over in the handshake of a connection. It holds offsets, and
// no pointers.
//
//   header         sizes, nonce; whether the owner wants to be rung; which connections have something
//   registrations  memory that peers may read and write
//   rings          one for each connection: 48 lines of 64 bytes, written by the connection's peer alone
//   slots, free    receive buffers that all connections share, and the ring of those that are free again
//   slab           the buffers themselves
//
// A line of a ring is published by one store of its mark, so a peer that dies leaves a whole line or none.
// Its claims of buffers carry the connection, and the owner frees them when the connection ends.
namespace orrery::cci {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::uint64_t kSegmentMagic = 0x3149434352524fULL;
inline constexpr std::uint32_t kSegmentVersion = 3;
inline constexpr std::uint32_t kMaxConnections = 16'384;
inline constexpr std::uint32_t kMaxReceiveBuffers = 16'384;
inline constexpr std::uint32_t kMaxRegistrations = 65'536;
inline constexpr std::uint32_t kRingLines = 48;
inline constexpr std::uint32_t kInlineBytes = 56;

// What a line says.
enum class LineKind : std::uint8_t { message = 1, buffered = 2 };

// mark: 63..32 position + 1 | 31..24 kind | 23..16 generation of the connection | 15..0 bytes
struct alignas(kLineBytes) Line {
  std::atomic<std::uint64_t> mark;
  std::byte bytes[kInlineBytes];
};
static_assert(sizeof(Line) == kLineBytes);

// A line's contents when the message lies in a buffer.
struct BufferedMessage {
  std::uint32_t buffer;
  std::uint32_t serial;
  std::uint32_t bytes;
  std::uint32_t reserved;
};

constexpr std::uint64_t line_mark(std::uint64_t position, LineKind kind, std::uint8_t generation,
                                  std::uint16_t bytes) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(position + 1)) << 32 |
         static_cast<std::uint64_t>(kind) << 24 | static_cast<std::uint64_t>(generation) << 16 | bytes;
}

struct ConnectionRing {
  alignas(kLineBytes) std::atomic<std::uint64_t> head;      // owner: lines taken, at least
  std::atomic<std::uint32_t> attended;                      // owner: 1 while it looks at the lines themselves
  alignas(kLineBytes) std::atomic<std::uint64_t> touching;  // peer: registration it copies from or to, plus 1
  Line lines[kRingLines];
};
static_assert(sizeof(ConnectionRing) == 2 * kLineBytes + kRingLines * kLineBytes);

// state: 63..32 serial | 31..2 claimer | 1..0 BufferState. The claimer is generation << 14 | connection.
enum class BufferState : std::uint8_t { free = 0, claimed = 1, taken = 2 };

// control: 63..32 generation | 3 kMoving | 2 kMapped | 1 write | 0 read; generation even: not registered.
inline constexpr std::uint64_t kMapped = 4;  // all of it lies in the owner's memory file
inline constexpr std::uint64_t kMoving = 8;  // by frames: it is being moved there
struct alignas(32) Registration {
  std::atomic<std::uint64_t> control;
  std::atomic<std::uint64_t> start;
  std::atomic<std::uint64_t> length;
  std::atomic<std::uint64_t> touched;  // peers: operations, counted before each that is not by the file
};

struct SegmentHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t buffer_bytes;
  std::uint64_t segment_bytes;
  std::uint64_t nonce;
  std::int64_t pid;
  std::uint64_t probe_address;  // in the owner's memory: holds probe_word
  std::uint64_t probe_word;
  std::atomic<std::uint32_t> buffer_limit;               // buffers with a smaller index may be claimed
  std::atomic<std::uint32_t> wanted;                     // under a clock: a sender waits for room
  alignas(kLineBytes) std::atomic<std::uint32_t> armed;  // 1: ring the doorbell, once
  alignas(kLineBytes) std::atomic<std::uint64_t> free_head;
  std::atomic<std::uint64_t> fresh;  // buffers from here on were never used
  alignas(kLineBytes) std::atomic<std::uint64_t> free_tail;
  alignas(kLineBytes) std::atomic<std::uint64_t> ready_words[kMaxConnections / 64 / 64];
  alignas(kLineBytes) std::atomic<std::uint64_t> ready[kMaxConnections / 64];
};

// One claim of a receive buffer.
struct Claim {
  std::uint32_t buffer = 0;
  std::uint32_t serial = 0;
};

// A mapped segment, the endpoint's own or a peer's. Owns the mapping; of its own also the descriptor.
class Segment {
 public:
  // The owner's: all zero, sparse. Errors: no_memory, system.
  static Result<std::unique_ptr<Segment>> create(std::uint32_t buffer_bytes, std::uint64_t nonce);
  // A peer's, checked against the size of the file. Errors: corrupt, system.
  static Result<std::unique_ptr<Segment>> open(int fd);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  int fd() const { return fd_.get(); }
  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  Registration& registration(std::uint32_t index) const;
  ConnectionRing& ring(std::uint32_t connection) const;
  std::byte* buffer(std::uint32_t index) const;
  std::uint32_t buffer_bytes() const { return buffer_bytes_; }

  // Any process: takes a free buffer for `claimer`. Errors: no_resource.
  Result<Claim> claim(std::uint32_t claimer) const;
  // Any process: tells the owner that a connection has something. True: the owner wants to be rung now.
  bool announce(std::uint32_t connection) const;

  // The owner, under its lock. What a line names is the client's from now on. False: `claimer` has not
  // claimed it.
  bool take(const Claim& claim, std::uint32_t claimer) const;
  void give_back(std::uint32_t buffer) const;
  // Frees what `claimer` had claimed.
  void free_claims_of(std::uint32_t claimer) const;
  // In a child of fork(2): private zeros in the place of the memory that the parent shares.
  void forget() const;
  // How many buffers senders may claim, from now on.
  void set_buffer_limit(std::uint32_t limit) const;

 private:
  Segment() = default;
  std::atomic<std::uint64_t>* slots() const;
  std::atomic<std::uint64_t>* free_ring() const;
  void make_free(std::uint32_t buffer, std::uint32_t serial) const;
  void push_free(std::uint32_t buffer, std::uint32_t serial) const;
  UniqueFd fd_;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint32_t buffer_bytes_ = 0;
};

}  // namespace orrery::cci
