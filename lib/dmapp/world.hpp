// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/memory/symmetric_heap.hpp"
#include "emu/nic/host/runtime.hpp"
#include "lib/common/sign_on.hpp"
#include "lib/dmapp/attributes.hpp"
#include "lib/dmapp/heap_size.hpp"
#include "lib/dmapp/inside.hpp"
#include "lib/dmapp/segment.hpp"
#include "lib/dmapp/visit.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

// This process as a PE: what dmapp_init sets up and dmapp_finalize ends.
namespace orrery::dmapp {

class Context;

// One registration that every PE has.
struct Region {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  nic::MemKey key;
};

// What each PE tells all others at the start.
struct Card {
  std::int32_t pe = -1;
  std::uint32_t nic_address = 0;
  std::uint32_t process_generation = 0;
  std::uint32_t process_slot = 0;
  std::uint32_t heap_in_file = 0;               // 1: the heap lies in the memory file
  std::array<Region, kSymmetricKinds> regions;  // by SegKind
};

// Threads: members that are constant after init by any; contexts under their lock.
// Invariants: (1) there is at most one, current(); (2) contexts live until finalize, in the order in which
// their threads came.
// Usage: World* world = World::current();  if (world == nullptr) return DMAPP_RC_INVALID_PARAM;
class World {
 public:
  // Null before init and after finalize.
  static World* current() { return g_current.load(std::memory_order_acquire); }
  // Collective. Errors: those of the job, the NIC and the memory; the log says why.
  static Result<World*> start(const Attributes& attributes);
  // Collective. Ends current(), after the calls of other threads that wait for something of it.
  static void stop();
  // Which one a thread comes to that has no seat, or a stale one: its context there (null: the log says
  // why), and the epoch. Null, 0: there is none.
  static Context* enter_current(std::uint64_t* epoch);
  // A thread gives back what it has from there.
  static void leave_current(Context& context, std::uint64_t epoch);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int pe() const { return pe_; }
  int npes() const { return npes_; }
  const Card& card(int pe) const { return cards_[static_cast<std::size_t>(pe)]; }
  const Region& own(SegKind kind) const { return card(pe_).regions[static_cast<std::size_t>(kind)]; }
  dmapp_seg_desc_t descriptor(SegKind kind) const {
    const Region& region = own(kind);
    return seg::make(kind, pe_, region.base, region.bytes, region.key);
  }
  nic::Nic& nic() const { return runtime_.nic(); }
  nic::Runtime& runtime() const { return runtime_; }
  const common::SignOn& signed_on() const { return signed_on_; }
  memory::SymmetricHeap& heap() { return *heap_; }
  // What made the heap as large as it is.
  const HeapSize& heap_size() const { return heap_size_; }
  Inside& inside() { return *inside_; }
  const Attributes& attributes() const { return attributes_; }
  // Whether the PE's process lives. Any thread; one load.
  bool alive(int pe) const;
  // From now on its death is noticed here, and alive() says so.
  void watch(int pe) const;

  // Zeroed pages for the library's own use, in the memory file where that may be. Null: no memory.
  void* allocate_pages(std::uint64_t bytes) const;
  void free_pages(void* block, std::uint64_t bytes) const;

  std::size_t contexts() const { return context_count_.load(std::memory_order_acquire); }
  // REQUIRES: index < contexts().
  Context& context(std::size_t index) const { return *contexts_[index]; }

 private:
  World(nic::Runtime& runtime, const Attributes& attributes);
  // The calling thread's context, made at its first call; null: the log says why.
  Context* enter();
  void wait_for_visits() const;
  Status set_up();
  Status place_heap();
  Status refuse_heap(Errc code);
  Status exchange();
  Result<Region> enter_region(std::uint64_t base, std::uint64_t bytes);
  bool map_heap(std::uint64_t at, std::uint64_t bytes);

  static std::atomic<World*> g_current;
  nic::Runtime& runtime_;
  const Attributes attributes_;
  common::SignOn signed_on_;
  int pe_ = 0;
  int npes_ = 1;
  std::vector<Card> cards_;
  Card mine_;
  Inside* inside_ = nullptr;
  bool in_file_ = false;  // heap and inside lie in the memory file
  HeapSize heap_size_;
  std::unique_ptr<memory::SymmetricHeap> heap_;
  std::mutex mu_;
  std::array<std::unique_ptr<Context>, kMaxContexts> contexts_;  // written under mu_
  std::atomic<std::size_t> context_count_{0};
  std::vector<Context*> idle_;  // guarded by mu_
};

}  // namespace orrery::dmapp
