// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/state/nic_state.hpp"
#include "emu/nic/state/request.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

// Short messages through a mailbox in the receiver's registered memory (docs/mailbox.md). All that a
// connection shares is in the two mailboxes; a message, and a credit that comes back, are stores into the
// other side's.
//
//   mailbox = control slot[credits]              starts at the first line boundary of its memory
//   control = released:u64, rest of the line     written by the peer: how many of our messages it has
//   released slot    = word:u64 unused:u64 payload        whole lines; message n, counted from 0, is in slot
//   n % credits word    = 63..32 n + 1 | 31..24 tag | 16 set | 15..0 bytes of payload         stored last
//
// Memory of zeros is a mailbox without messages: a sender need not wait until its receiver looks at it. One
// store publishes a message, so a sender that dies leaves it whole or absent.
namespace orrery::nic {

inline constexpr std::uint32_t kMaxMessageBytes = 65'535;
inline constexpr std::uint64_t kMessageHeaderBytes = 16;  // of a slot, before the payload
// What the sender's own header may add to data of the agreed length: clients count their data alone.
inline constexpr std::uint32_t kMessageHeaderRoom = 32;

namespace message_word {
inline constexpr std::uint64_t kSet = 1u << 16;
constexpr std::uint64_t make(std::uint64_t number, std::uint8_t tag, std::uint32_t bytes) {
  return (number + 1) << 32 | static_cast<std::uint64_t>(tag) << 24 | kSet | bytes;
}
constexpr bool is(std::uint64_t word, std::uint64_t number) {
  return word >> 32 == ((number + 1) & 0xffff'ffff) && (word & kSet) != 0;
}
constexpr std::uint8_t tag(std::uint64_t word) { return static_cast<std::uint8_t>(word >> 24); }
constexpr std::uint32_t bytes(std::uint64_t word) { return static_cast<std::uint32_t>(word & 0xffff); }
}  // namespace message_word

// What both sides agree on.
struct MailboxShape {
  std::uint32_t credits = 0;    // messages that are under way or not released, 1..65,535
  std::uint32_t max_bytes = 0;  // of one message's data, 0..kMaxMessageBytes
  constexpr std::uint64_t slot_bytes() const {
    return (kMessageHeaderBytes + most_bytes() + kCacheLine - 1) / kCacheLine * kCacheLine;
  }
  // Of a message with its header.
  constexpr std::uint32_t most_bytes() const {
    return max_bytes + kMessageHeaderRoom < kMaxMessageBytes ? max_bytes + kMessageHeaderRoom
                                                             : kMaxMessageBytes;
  }
  // Of the mailbox wherever its memory begins.
  constexpr std::uint64_t bytes() const { return 2 * kCacheLine + credits * slot_bytes(); }
  friend constexpr bool operator==(const MailboxShape&, const MailboxShape&) = default;
};

// Where one side's mailbox is.
struct MailboxPlace {
  MemKey key;
  std::uint64_t address = 0;  // as its owner has it; need not be aligned
  constexpr std::uint64_t begin() const { return (address + kCacheLine - 1) / kCacheLine * kCacheLine; }
};

struct Peer;

// One endpoint's end of a connection. Owned by the endpoint, used by its thread; only `broken` is set by
// others.
struct Mailbox {
  Mailbox(const MailboxShape& s, const MailboxPlace& ours, const MailboxPlace& theirs)
      : shape(s),
        local(reinterpret_cast<std::byte*>(ours.begin())),
        remote(theirs.begin()),
        remote_key(theirs.key) {}

  std::atomic_ref<std::uint64_t> released_word() const {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(local));
  }
  // Where message `next` is or will be, and in the peer's address space, where message `sent` goes.
  std::byte* next_slot() const { return local + kCacheLine + next_offset; }
  std::uint64_t sent_slot() const { return remote + kCacheLine + sent_offset; }
  void count_next() {
    ++next;
    next_offset = offset_after(next_offset);
  }
  void count_sent() {
    ++sent;
    sent_offset = offset_after(sent_offset);
  }

  const MailboxShape shape;
  const std::uint64_t slot_bytes = shape.slot_bytes();
  const std::uint64_t slots_bytes = shape.credits * slot_bytes;
  bool sends_again = false;  // what met a fault on its way
  std::byte* const local;
  const std::uint64_t remote;  // in the peer's address space
  const MemKey remote_key;
  Peer* peer = nullptr;  // null: it was not there when the connection was opened

  std::uint64_t sent = 0;          // counted by count_sent() alone
  std::uint64_t acknowledged = 0;  // of them released by the peer, as far as we have looked
  std::uint64_t next = 0;          // message that next_message() gives, or gave; by count_next() alone
  // Of their slots behind the first one: number % credits * slot_bytes, without a division for each message.
  std::uint64_t sent_offset = 0;
  std::uint64_t next_offset = 0;
  bool current = false;      // it was given and not released
  bool unanswered = false;   // nothing was sent since the last one was given
  bool is_answered = false;  // the last one that we sent was the first since one was given
  bool credit_owed = false;  // the last credit found no room on the wire
  bool garbled = false;      // our own mailbox holds what no peer of ours writes
  std::atomic<bool> broken{false};

  // By frame: bytes that the wire has not taken yet, by slot. A slot is not used again before its
  // message was released, which is long after it was taken.
  std::unique_ptr<std::byte[]> staging;
  std::vector<std::uint64_t> staged_credits;

 private:
  std::uint64_t offset_after(std::uint64_t offset) const {
    offset += slot_bytes;
    return offset == slots_bytes ? 0 : offset;
  }
};

}  // namespace orrery::nic
