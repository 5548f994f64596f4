// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

// What stands behind the opaque handles of an API.
namespace orrery::common {

// The one process-global state of an API's library: it turns the handles that clients hold into objects, and
// recognises those it did not give out. A handle is a word, not an address:
//
//   63..56 tag 0xa7 | 55..52 kind | 51..20 generation, never 0 | 19..0 slot
//
// so NULL, an address, a freed handle, one of another kind or of another process differs from the word in the
// slot that it names, and is refused without anything being read through it.
//
// Owns its slots, not the objects. Threads: find() from any; insert() and erase() take a lock. An object must
// not be freed while another thread uses it: clients serialise that, as the interface asks. A thread that
// looks a handle up while another one ends it finds the object that it was, or nothing.
// Invariants: (1) a slot holds the word of the live handle that names it, or 0; (2) a generation is used
// for a slot once, until 2^32 - 1 of them are spent, when the slot is retired; (3) generations start at a
// different value in each process.
// Usage: see TypedHandleTable.
class HandleTable {
 public:
  static constexpr std::uint32_t kCapacity = 1u << 20;  // 24 MiB of address space, touched as it fills

  // 0: generations start at a value of the process's own, chosen by the first insert().
  constexpr explicit HandleTable(std::uint32_t first_generation = 0) : first_generation_(first_generation) {}
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  // A new handle for `object`, which must not be null; 0 when all slots are taken. `kind`: 1 to 15.
  std::uint64_t insert(std::uint8_t kind, void* object);

  // Ends a handle; what it stood for, or nullptr when it is not a live handle of that kind.
  void* erase(std::uint8_t kind, std::uint64_t handle);

  // The object of a live handle of that kind, or nullptr. Accepts any 64 bits. Any thread, takes no lock.
  void* find(std::uint8_t kind, std::uint64_t handle) const {
    const Slot& slot = slots_[handle & (kCapacity - 1)];
    // Acquire: pairs with insert's release, so the object is seen complete.
    if (slot.word().load(std::memory_order_acquire) != handle || kind_of(handle) != kind) [[unlikely]]
      return nullptr;
    return reinterpret_cast<void*>(slot.payload);
  }

  std::uint32_t live() const;

  // Calls `see` with the object of each live handle of a kind, under the table's lock: it must not insert or
  // erase.
  template <typename See>
  void for_each(std::uint8_t kind, See see) const {
    const std::lock_guard lock(mutex_);
    for (std::uint32_t i = 1; i <= used_; ++i) {
      const std::uint64_t handle = slots_[i].word().load(std::memory_order_relaxed);
      if (handle != 0 && kind_of(handle) == kind) see(reinterpret_cast<void*>(slots_[i].payload));
    }
  }

  // Ends all handles. Their objects are left alone. For the end of the process, and for a child of fork(),
  // where no other thread runs.
  void forget_all();

 private:
  // Without initialisers, so that clang 14 takes a million of them for a constant.
  struct Slot {
    mutable std::uint64_t handle;  // through word() only
    std::uintptr_t payload;        // of the last object that was here; it stays when the handle ends

    std::atomic_ref<std::uint64_t> word() const { return std::atomic_ref<std::uint64_t>(handle); }
  };
  static_assert(sizeof(Slot) == 16 && sizeof(std::uintptr_t) == 8);

  static constexpr std::uint8_t kind_of(std::uint64_t handle) {
    return static_cast<std::uint8_t>(handle >> 52 & 0xf);
  }

  std::array<Slot, kCapacity> slots_{};
  // Of a free slot: generation of its next handle << 20 | next free slot. Guarded by mutex_.
  std::array<std::uint64_t, kCapacity> free_words_{};

  // Slot 0 is never used: it ends the list of free slots, and no handle is 0.
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::uint32_t first_generation_;
  std::uint32_t free_ = 0;
  std::uint32_t used_ = 0;  // slots_[1..used_] were used at least once
  std::uint32_t live_ = 0;
};

// The same for the kinds of one API: an enumeration of bytes, of values 1 to 15.
// Usage: auto handle = table.insert(Kind::ep, ep);
//        ep = static_cast<Ep*>(table.find(Kind::ep, handle));
template <typename Kind>
class TypedHandleTable : private HandleTable {
  static_assert(sizeof(Kind) == 1);

 public:
  using HandleTable::forget_all;
  using HandleTable::HandleTable;
  using HandleTable::kCapacity;
  using HandleTable::live;

  std::uint64_t insert(Kind kind, void* object) {
    return HandleTable::insert(static_cast<std::uint8_t>(kind), object);
  }
  void* erase(Kind kind, std::uint64_t handle) {
    return HandleTable::erase(static_cast<std::uint8_t>(kind), handle);
  }
  void* find(Kind kind, std::uint64_t handle) const {
    return HandleTable::find(static_cast<std::uint8_t>(kind), handle);
  }
  template <typename See>
  void for_each(Kind kind, See see) const {
    HandleTable::for_each(static_cast<std::uint8_t>(kind), see);
  }
};

}  // namespace orrery::common
