// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/state/nic_state.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

// Atomic operations by (operation, type), on arrays of numbers: those of interfaces that know more than the
// words of the AMO unit (amo_unit.hpp). Each element is atomic alone. Elements of up to 16 bytes that are
// aligned to their size change by one compare-and-swap of the processor, and are atomic against the AMO unit
// and the owner's own atomics too. The others (32 bytes, or complex numbers that are aligned to their parts)
// change under a lock of the owner's segment, and are atomic against operations of the same type.
namespace orrery::nic {

// DO NOT CHANGE THE VALUES: they travel in packets.
enum class AtomicOp : std::uint8_t {
  min = 0,
  max = 1,
  sum = 2,
  prod = 3,
  logical_or = 4,
  logical_and = 5,
  bit_or = 6,
  bit_and = 7,
  logical_xor = 8,
  bit_xor = 9,
  swap = 10,
  // The data are stored if `compare` stands in that relation to what is there: compare <= target, and so on.
  compare_swap = 11,
  compare_swap_ne = 12,
  compare_swap_le = 13,
  compare_swap_lt = 14,
  compare_swap_ge = 15,
  compare_swap_gt = 16,
  masked_swap = 17,  // bits of the data where `compare` has ones
};
inline constexpr std::uint32_t kAtomicOps = 18;

enum class AtomicType : std::uint8_t {
  int8 = 0,
  uint8 = 1,
  int16 = 2,
  uint16 = 3,
  int32 = 4,
  uint32 = 5,
  float32 = 6,
  int64 = 7,
  uint64 = 8,
  float64 = 9,
  complex32 = 10,  // two float32
  complex64 = 11,  // two float64
  long_double = 12,
  long_complex = 13,  // two long_double
};
inline constexpr std::uint32_t kAtomicTypes = 14;

namespace atomic_unit {

// Bytes of an element; 0: no such type.
constexpr std::uint64_t size_of(AtomicType type) {
  constexpr std::uint8_t kSizes[kAtomicTypes] = {1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 8, 16, 16, 32};
  const auto index = static_cast<std::uint32_t>(type);
  return index < kAtomicTypes ? kSizes[index] : 0;
}
// What an element's address must be a multiple of.
constexpr std::uint64_t alignment_of(AtomicType type) {
  switch (type) {
    case AtomicType::complex32:
      return 4;
    case AtomicType::complex64:
      return 8;
    case AtomicType::long_complex:
      return 16;
    default:
      return size_of(type);
  }
}
constexpr bool is_complex(AtomicType type) {
  return type == AtomicType::complex32 || type == AtomicType::complex64 || type == AtomicType::long_complex;
}
constexpr bool is_integer(AtomicType type) {
  return static_cast<std::uint32_t>(type) < kAtomicTypes && type != AtomicType::float32 &&
         type != AtomicType::float64 && type < AtomicType::complex32;
}
// Whether there is such an operation: order is not for complex numbers, bits are for integers alone.
constexpr bool is_valid(AtomicOp op, AtomicType type) {
  if (static_cast<std::uint32_t>(op) >= kAtomicOps || static_cast<std::uint32_t>(type) >= kAtomicTypes)
    return false;
  switch (op) {
    case AtomicOp::min:
    case AtomicOp::max:
    case AtomicOp::compare_swap_le:
    case AtomicOp::compare_swap_lt:
    case AtomicOp::compare_swap_ge:
    case AtomicOp::compare_swap_gt:
      return !is_complex(type);
    case AtomicOp::logical_or:
    case AtomicOp::logical_and:
    case AtomicOp::bit_or:
    case AtomicOp::bit_and:
    case AtomicOp::logical_xor:
    case AtomicOp::bit_xor:
    case AtomicOp::masked_swap:
      return is_integer(type);
    default:
      return true;
  }
}
// Whether it needs a value beside the data.
constexpr bool compares(AtomicOp op) { return op >= AtomicOp::compare_swap; }

// What an element becomes. `bytes` of all four: size_of(type). REQUIRES: is_valid(op, type).
void combine(AtomicOp op, AtomicType type, const std::byte* old, const std::byte* data,
             const std::byte* compare, std::byte* result);

}  // namespace atomic_unit

// One lock of the owner's segment. The holder writes down what it is about to store before it stores it; a
// survivor that finds the holder dead stores it again, which changes nothing that was done, and goes on.
struct alignas(kCacheLine) AtomicLock {
  std::atomic<std::uint64_t> holder;   // generation << 17 | process slot << 1 | 1; 0: free
  std::atomic<std::uint64_t> address;  // in the owner's memory, of the store that is under way; 0: none
  std::uint64_t bytes;
  std::array<std::byte, 32> value;
};
static_assert(sizeof(AtomicLock) == 64);
struct AtomicLocks {
  AtomicLock locks[1024];
};
static_assert(sizeof(AtomicLocks) <= kAtomicLockArea.bytes);

// The process that carries the operation out, and what it knows of others.
struct AtomicAgent {
  std::uint16_t slot = 0;
  std::uint32_t generation = 0;
  std::function<bool(std::uint16_t slot, std::uint32_t generation)> alive;
  // Where `bytes` at an address of the owner's memory are mapped here; null: they are not. Asked for the
  // element that a dead holder of the same lock was storing. The owner: the address itself.
  std::function<std::byte*(std::uint64_t address, std::uint64_t bytes)> map;
  std::int64_t patience_ns = 100'000'000;  // for a holder that is stopped
};

// One operation on an array.
struct AtomicRequest {
  AtomicOp op = AtomicOp::sum;
  AtomicType type = AtomicType::int64;
  std::span<const std::byte> data;     // elements, packed
  const std::byte* compare = nullptr;  // one element, if compares(op)
  std::span<std::byte> old;            // gets what was there before; empty: not asked for
};

// Applies it to the elements at `target`, which are at `address` in the owner's memory. ok; illegal_op; size
// (the data are no whole number of elements, or `old` is of another length); alignment; and then nothing was
// changed. timeout: an element's lock was held by a stopped process all that time; unreachable: or by a dead
// one that was storing where nothing is mapped here; the elements before it are done. Any thread of any
// process. REQUIRES: the range was checked; compare is there if it is needed.
Errc apply_atomic(const NicView& owner, const AtomicAgent& agent, const AtomicRequest& request,
                  std::byte* target, std::uint64_t address);

}  // namespace orrery::nic
