// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/target/execute.hpp"
#include "emu/nic/target/float_rules.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

// The AMO unit: atomic memory operations on words of the target's memory. A command is one byte, the same for
// every API and on the wire. DO NOT CHANGE THE VALUES.
//
//   6 cached | 5 narrow: 32 bits, not 64 | 4 fetching: the old value comes back | 3..0 AmoOp
//
// A narrow command uses the low halves of its operands. An operation may be of several words: the same
// command with the same operands on each, one after the other, each atomic alone. Words follow each other,
// but for commands with two operands that do not fetch: there they are every other one, because such a packet
// carries the operands where the words would be.
//
// What a command does to a word is done by one instruction of this processor, or by a loop around its
// compare-and-swap; so it is atomic against every other path to the word, the target's own atomics too.
namespace orrery::nic {

enum class AmoOp : std::uint8_t {
  bit_and = 0,       // old & a
  bit_or = 1,        // old | a
  bit_xor = 2,       // old ^ a
  swap = 3,          // a
  and_xor = 4,       // (old & a) ^ b
  compare_swap = 5,  // old == a ? b : old
  min = 8,           // of two's complement numbers
  max = 9,
  add = 10,        // wraps
  float_min = 12,  // float_rules.hpp
  float_max = 13,
  float_add = 14,
};
inline constexpr std::uint8_t kAmoFetch = 0x10;
inline constexpr std::uint8_t kAmoNarrow = 0x20;
inline constexpr std::uint8_t kAmoCached = 0x40;  // by way of the AMO cache (amo_cache.hpp)

namespace amo {

constexpr std::uint8_t command(AmoOp op, unsigned flags) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(op) | flags);
}
constexpr AmoOp op(std::uint8_t command) { return static_cast<AmoOp>(command & 0x0f); }
constexpr bool is_valid(std::uint8_t command) {
  constexpr std::uint32_t kOps = 0b0111'0111'0011'1111;
  return command < 0x80 && (kOps >> (command & 0x0f) & 1) != 0;
}
constexpr bool fetches(std::uint8_t command) { return (command & kAmoFetch) != 0; }
// Bytes of a word.
constexpr std::uint64_t width(std::uint8_t command) { return (command & kAmoNarrow) != 0 ? 4 : 8; }
// Bytes from one word of an operation to the next.
constexpr std::uint64_t stride(std::uint8_t command) {
  const bool two_operands = op(command) == AmoOp::and_xor || op(command) == AmoOp::compare_swap;
  return two_operands && !fetches(command) ? 2 * width(command) : width(command);
}
// How many words an operation of `length` bytes is of: one of a single word's length may leave out the
// operands' space. 0: it is of no whole number of them.
constexpr std::uint64_t words(std::uint8_t command, std::uint64_t length) {
  if (length == width(command)) return 1;
  return length % stride(command) == 0 ? length / stride(command) : 0;
}

template <typename Word>
constexpr Word combined(AmoOp op, Word old, Word a, Word b) {
  using Signed = std::make_signed_t<Word>;
  switch (op) {
    case AmoOp::bit_and:
      return old & a;
    case AmoOp::bit_or:
      return old | a;
    case AmoOp::bit_xor:
      return old ^ a;
    case AmoOp::swap:
      return a;
    case AmoOp::and_xor:
      return (old & a) ^ b;
    case AmoOp::compare_swap:
      return old == a ? b : old;
    case AmoOp::min:
      return static_cast<Signed>(a) < static_cast<Signed>(old) ? a : old;
    case AmoOp::max:
      return static_cast<Signed>(a) > static_cast<Signed>(old) ? a : old;
    case AmoOp::add:
      return old + a;
    case AmoOp::float_min:
      return float_rules::min(old, a);
    case AmoOp::float_max:
      return float_rules::max(old, a);
    case AmoOp::float_add:
      return float_rules::add(old, a);
  }
  return old;
}

// Whatever has no instruction of its own. Returns the old value.
template <typename Word>
[[gnu::noinline]] Word apply_by_swap(Word* word, AmoOp op, Word a, Word b) {
  const std::atomic_ref<Word> target(*word);
  Word old = target.load(std::memory_order_acquire);
  for (;;) {
    const Word value = combined(op, old, a, b);
    // A word that stays as it is need not be written: the load was the operation.
    if (value == old || target.compare_exchange_weak(old, value, std::memory_order_acq_rel)) return old;
  }
}

// Applies one command to one word. Returns the old value; that of a command that does not fetch means
// nothing. Acquire and release: a thread that sees the AMO sees data put before it. REQUIRES:
// is_valid(command), of this width; `word` is aligned.
template <typename Word>
[[gnu::always_inline]] inline Word apply(Word* word, std::uint8_t command, Word a, Word b) {
  const std::atomic_ref<Word> target(*word);
  // Without use for the old value the bitwise ones are single instructions.
  switch (command & (0x0f | kAmoFetch)) {
    case static_cast<unsigned>(AmoOp::add):
    case static_cast<unsigned>(AmoOp::add) | kAmoFetch:
      return target.fetch_add(a, std::memory_order_acq_rel);
    case static_cast<unsigned>(AmoOp::swap):
    case static_cast<unsigned>(AmoOp::swap) | kAmoFetch:
      return target.exchange(a, std::memory_order_acq_rel);
    case static_cast<unsigned>(AmoOp::compare_swap):
    case static_cast<unsigned>(AmoOp::compare_swap) | kAmoFetch:
      target.compare_exchange_strong(a, b, std::memory_order_acq_rel, std::memory_order_acquire);
      return a;  // what was found
    case static_cast<unsigned>(AmoOp::bit_and):
      target.fetch_and(a, std::memory_order_acq_rel);
      return 0;
    case static_cast<unsigned>(AmoOp::bit_or):
      target.fetch_or(a, std::memory_order_acq_rel);
      return 0;
    case static_cast<unsigned>(AmoOp::bit_xor):
      target.fetch_xor(a, std::memory_order_acq_rel);
      return 0;
    default:
      return apply_by_swap(word, op(command), a, b);
  }
}

}  // namespace amo

// The target's side: applies the packet's command to header.part_bytes bytes from header.offset on, and puts
// the old values, one behind the other, into `out`, which must be as long as they are: empty for a command
// that does not fetch. `word` is the entry's control word, with which access to the whole operation was
// checked. Returns ok, or illegal_op (no such command), alignment (address, or a length of no whole number of
// words), bounds, and then nothing was changed. Not blocking; any thread. REQUIRES: as execute().
Errc execute_amo(const Target& target, const MrtEntry& entry, std::uint64_t word,
                 const wire::PacketHeader& header, std::span<std::byte> out);

}  // namespace orrery::nic
