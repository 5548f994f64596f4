// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

// The part of each PE's memory that other PEs' libraries write to: places in the queues of locks, the name of
// its message queue, what members of a set send each other. Zero at the start.
//
//   0        LockPlace     x kLockPlaces    a waiter's: written by the one before it and by the one behind it
//   64 KiB   MessageQueue  x 1              written by its owner, read by senders
//   68 KiB   SetSlot       x kSets          rows of a set; each row is written by one member alone
namespace orrery::dmapp {

inline constexpr std::size_t kLockPlaces = 1024;
inline constexpr std::size_t kSets = 64;
inline constexpr std::size_t kArity = 8;        // of the trees of sets
inline constexpr std::size_t kSetElements = 8;  // QWs of a reduction

struct alignas(64) LockPlace {
  std::atomic<std::uint64_t> next;     // name of the place behind this one; 0: none yet
  std::atomic<std::uint64_t> granted;  // lock::LockWord
  std::atomic<std::uint64_t> lost;     // the same; written by its owner, read by the one behind it
};

struct alignas(64) MessageQueue {
  std::atomic<std::uint64_t> name;  // 0: there is none
};

// One row: data, then the turn that they are of, written behind them.
struct alignas(64) SetRow {
  std::uint64_t data[kSetElements];
  std::atomic<std::uint64_t> turn;
};

struct alignas(64) SetSlot {
  std::atomic<std::uint64_t> identifier;  // of the set, plus 1; 0: free
  SetRow up[2][kArity];                   // from the others or the children, by the turn's lowest bit
  SetRow down;                            // from the parent
};

struct Inside {
  LockPlace locks[kLockPlaces];
  alignas(4096) MessageQueue queue;
  alignas(4096) SetSlot sets[kSets];
};
static_assert(offsetof(Inside, queue) == 64 << 10 && offsetof(Inside, sets) == 68 << 10);
static_assert(sizeof(LockPlace) == 64 && sizeof(SetRow) == 128 && sizeof(SetSlot) == 64 + 17 * 128);

}  // namespace orrery::dmapp
