// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/state/nic_state.hpp"
#include "emu/wire/packet.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

// Datagrams as they lie in a NIC's segment, and the one rule that matches them. A post stays in its owner's
// table; the process of the second of two matching posts finds the first there, and exchanges the bytes.
//
//   post word:   free -> preparing -> pending -> completed | terminated | failed -> free
//                                     pending <-> claimed -> completed
//                                     pending <-> asking -> completed
//
// An exchange of X with Y is made by the owner of one of the two: it claims X, its own, then Y, copies both
// ways and completes Y, then X. So a claim whose claimer died concerns one living post at most, and that one
// has either been completed, by one store, or goes back to pending: nothing to replay, no process to wait
// for. A claimer that is stopped, not dead, holds up the two posts that it claimed and no others. By the wire
// between hosts the owner asks its partner's NIC, and its own post is held meanwhile: one that is asking is
// matched by none, and none that was posted later is matched in its place.
namespace orrery::nic {

inline constexpr std::uint32_t kDatagramBytes = 128;
inline constexpr std::uint32_t kMaxDatagrams = 4096;  // posts of one process that are not taken yet

enum class PostState : std::uint8_t {
  free = 0,
  preparing = 1,   // its owner writes it
  pending = 2,     // waits for its partner
  claimed = 3,     // is being exchanged right now; the word names the claimer
  completed = 4,   // the partner's bytes are here
  terminated = 5,  // cancelled
  failed = 6,      // the peer that it was bound to is dead
  asking = 8,      // its owner asks a process of another host whether that has a post for it
  filled = 7,      // channels: the bytes are here, their event is on its way; the word names its sender
};

//   63..40 serial | 39..16 claimer's generation | 15..4 claimer's slot | 3..0 PostState
namespace post_word {
constexpr PostState state(std::uint64_t word) { return static_cast<PostState>(word & 0xf); }
constexpr bool has_ended(PostState state) {
  return state == PostState::completed || state == PostState::terminated || state == PostState::failed;
}
// Whether it is there to be met, now or in a moment.
constexpr bool waits(PostState state) {
  return state == PostState::pending || state == PostState::claimed || state == PostState::asking;
}
constexpr std::uint64_t make(std::uint64_t serial, PostState state) {
  return serial << 40 | static_cast<std::uint64_t>(state);
}
constexpr std::uint64_t serial(std::uint64_t word) { return word >> 40; }
constexpr std::uint64_t with(std::uint64_t word, PostState state) { return make(serial(word), state); }
constexpr std::uint64_t claimed(std::uint64_t word, wire::ProcessSlot slot, std::uint32_t generation) {
  return with(word, PostState::claimed) | static_cast<std::uint64_t>(generation & 0xff'ffff) << 16 |
         static_cast<std::uint64_t>(slot) << 4;
}
// As claimer: the owner of the table, for a packet that came off a wire. Its death is its table's.
inline constexpr wire::ProcessSlot kOwner = 0xfff;
constexpr wire::ProcessSlot claimer_slot(std::uint64_t word) {
  return static_cast<wire::ProcessSlot>(word >> 4 & 0xfff);
}
constexpr std::uint32_t claimer_generation(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 16 & 0xff'ffff);
}
}  // namespace post_word

// Names a port: a NIC address and an instance number. One word, so that it is read whole.
constexpr std::uint64_t port_word(std::uint32_t nic_address, std::uint32_t instance) {
  return static_cast<std::uint64_t>(nic_address) << 32 | instance;
}

// One post. What is not `word` changes only while the word says preparing (owner) or claimed (claimer).
struct alignas(kCacheLine) DatagramPost {
  std::atomic<std::uint64_t> word;
  std::atomic<std::uint64_t> order;    // counts the owner's posts: the oldest wildcard is met first
  std::atomic<std::uint64_t> from;     // port_word of its port
  std::atomic<std::uint64_t> to;       // port_word of the peer that it is bound to
  std::atomic<std::uint64_t> partner;  // port_word of the partner that it met
  std::atomic<std::uint16_t> domain;
  std::atomic<std::uint16_t> wildcard;  // 1: bound to no port
  std::atomic<std::uint16_t> out_bytes;
  std::atomic<std::uint16_t> in_bytes;
  std::byte reserved[16];
  std::byte out[kDatagramBytes];
  std::byte in[kDatagramBytes];
};
static_assert(sizeof(DatagramPost) == 320 && offsetof(DatagramPost, out) == 64 &&
              offsetof(DatagramPost, in) == 192);

struct DatagramState {
  alignas(kCacheLine) std::atomic<std::uint32_t> count;  // owner: posts [0, count) were used so far
  // Bit i: process i, of this host, has bound posts to ports here.
  alignas(kCacheLine) std::atomic<std::uint64_t> sources[kMaxProcesses / 64];
  alignas(kCacheLine) std::atomic<std::uint32_t> waiters;  // sleepers in a blocking wait
  FutexWord signal;                                        // changes when they should look again
  alignas(kCacheLine) DatagramPost posts[kMaxDatagrams];
};
static_assert(offsetof(DatagramState, sources) == 64 && offsetof(DatagramState, waiters) == 192 &&
              offsetof(DatagramState, posts) == 256 && sizeof(DatagramState) <= kDatagramArea.bytes);

inline DatagramState& datagrams_of(const NicView& nic) { return nic.unit<DatagramState, kDatagramArea>(); }

// The packet of Verb::datagram: "here is a post of mine; if you have one that meets it, take these bytes and
// give me yours". Its payload is the post's bytes, and in the header
//   command      DatagramCommand
//   event_data   port_word of the post's port
//   operand[0]   port_word of the port that it is bound to; nothing for a wildcard
// The answer's payload is a DatagramReply. While a packet is under way its sender's post is `asking`.
enum class DatagramCommand : std::uint8_t { bound = 1, wildcard = 2 };

struct DatagramReply {
  std::uint64_t partner = 0;  // port_word of the partner that it met
  std::uint32_t bytes = 0;    // of data
  std::uint32_t reserved = 0;
  std::byte data[kDatagramBytes] = {};
};
static_assert(sizeof(DatagramReply) == 144);

// A post that meets what a packet describes, as it was seen.
struct DatagramMeeting {
  std::uint32_t index = 0;
  std::uint64_t word = 0;
};

// The post of `target` that meets the packet's: one that is bound back to its port, else the oldest wildcard;
// for a wildcard the oldest that is bound to its port. One that is claimed comes only when nothing else
// does. `not_index`: the packet's own post, when it lies in the same table. Any thread.
std::optional<DatagramMeeting> find_meeting(const NicView& target, const wire::PacketHeader& header,
                                            std::uint32_t not_index = UINT32_MAX);

// Applies the packet to `target`. ok: a post was completed with the payload, its owner was woken, and `reply`
// holds that post's bytes. not_done: no post meets it. no_resource: the post that would is being exchanged by
// the process that `busy` names: look again. illegal_op, size: a packet that makes no sense. Not blocking;
// any thread. `claimer`, with its generation: the process that applies it.
Errc execute_datagram(const NicView& target, const wire::PacketHeader& header,
                      std::span<const std::byte> payload, wire::ProcessSlot claimer, std::uint32_t generation,
                      DatagramReply* reply, DatagramMeeting* busy, std::uint32_t not_index = UINT32_MAX);

// The same for the NIC's owner, which took the packet off a wire: `out` receives the DatagramReply.
// Errors also size (of `out`).
Errc execute_datagram_packet(const NicView& nic, const wire::PacketHeader& header,
                             std::span<const std::byte> payload, std::span<std::byte> out);

// Ends a post: stores the word, and wakes threads that wait for it.
// REQUIRES: the caller claimed it, or owns it and it is `expected`. False: it is not any more.
bool end_post(const NicView& nic, DatagramPost& post, std::uint64_t expected, PostState end);

}  // namespace orrery::nic
