// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/short_lock.hpp"
#include "emu/nic/initiator/fast_amo.hpp"
#include "emu/nic/nic.hpp"
#include "lib/dmapp/attributes.hpp"
#include "lib/dmapp/completions.hpp"
#include "lib/dmapp/segment.hpp"
#include "lib/dmapp/status.hpp"
#include "lib/dmapp/visit.hpp"
#include "lib/dmapp/world.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

// A thread of the program at the NIC: all that this library knows of emu/nic's initiator. Operations go the
// fast path where a grant allows it, and are complete then; the others are counted by a Tracker until the
// NIC's events say that they ended.
namespace orrery::dmapp {

// What one PE is to a context: where its own registrations are, and how far it was reached before.
struct Target {
  nic::Endpoint endpoint;
  std::uint64_t key[kSymmetricKinds] = {};  // by SegKind
  std::uint64_t base[kSymmetricKinds] = {};
  std::uint64_t bytes[kSymmetricKinds] = {};
  bool looked_for_heap = false;
  std::byte* heap_here = nullptr;  // once it was looked for: where the PE's heap is mapped, if as one piece
  bool heap_in_pieces = false;     // ... or whether it is mapped piece by piece
};

// Bytes of a PE's memory.
struct Place {
  Target* target = nullptr;
  std::uint64_t key = 0;  // nic::key_word
  std::uint64_t address = 0;
};

enum class Mode : std::uint8_t { blocking, syncid, implicit };

// Threads: the one that it belongs to; drain() and what it calls, any. Invariants: (1) the port and its queue
// are used under mu_, but for the fast path, which uses neither.
class Context {
 public:
  Context(World& world, std::uint32_t number) : world_(world), number_(number) {}
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  // Opens port and queue. Errors: the NIC's.
  Status open();

  World& world() const { return world_; }
  nic::Nic& nic() const { return *nic_; }
  int pe() const { return pe_; }
  int npes() const { return npes_; }
  std::uint32_t number() const { return number_; }
  Attributes attributes;  // of the thread
  // Of a thread of the library's own that waits in virtual time: it makes no look in vain. The clock would
  // take it for one that has done with what came, and time would go on before it waits.
  bool makes_no_vain_look = false;

  // Sets what requests take from the attributes.
  void use_attributes();
  bool puts_in_order() const { return puts_in_order_; }
  bool gets_in_order() const { return gets_in_order_; }

  // Where `bytes` bytes at `address` of the segment are in that PE. Outcomes: SUCCESS, INVALID_PARAM,
  // NOT_FOUND.
  [[gnu::always_inline]] dmapp_return_t find(const dmapp_seg_desc_t* segment, int pe, const void* address,
                                             std::uint64_t bytes, Place* place) {
    if (segment == nullptr || address == nullptr || static_cast<unsigned>(pe) >= static_cast<unsigned>(npes_))
        [[unlikely]]
      return DMAPP_RC_INVALID_PARAM;
    const std::uint64_t offset =
        reinterpret_cast<std::uint64_t>(address) - reinterpret_cast<std::uint64_t>(segment->addr);
    if (offset > segment->len || bytes > segment->len - offset) [[unlikely]]
      return no_bytes(*segment);
    Target* target = targets_[static_cast<std::size_t>(pe)].get();
    if (target == nullptr) [[unlikely]] {
      target = reach(pe);
    }
    place->target = target;
    const std::uint64_t tag = segment->opaque[0];
    if (tag == seg::tag(SegKind::heap) || tag == seg::tag(SegKind::data)) [[likely]] {
      const std::size_t kind = tag & 3;
      if (offset + bytes > target->bytes[kind]) [[unlikely]]
        return DMAPP_RC_NOT_FOUND;
      place->key = target->key[kind];
      place->address = target->base[kind] + offset;
      return DMAPP_RC_SUCCESS;
    }
    if (tag != seg::tag(SegKind::memory) || segment->opaque[1] != static_cast<std::uint64_t>(pe)) [[unlikely]]
      return DMAPP_RC_INVALID_PARAM;
    place->key = segment->opaque[2];
    place->address = reinterpret_cast<std::uint64_t>(address);
    return DMAPP_RC_SUCCESS;
  }
  // The same of the part of a PE that is the library's own. REQUIRES: pe and offset are in range.
  Place find_inside(int pe, std::uint64_t offset) { return find_in(SegKind::inside, pe, offset); }
  // Where the PE's symmetric heap begins. REQUIRES: the same.
  Place find_heap(int pe) { return find_in(SegKind::heap, pe, 0); }

  // ---- the fast path: ok: complete; else start() it ----
  template <nic::Op kOp>
  [[gnu::always_inline]] Errc try_now(const Place& place, void* local, std::uint64_t bytes, Mode mode) {
    if (mode != Mode::blocking && bytes >= engine_bytes_) [[unlikely]]
      return Errc::not_done;
    return nic::try_fast<kOp>(place.target->endpoint,
                              {.key = place.key,
                               .local_address = reinterpret_cast<std::uint64_t>(local),
                               .remote_address = place.address,
                               .length = bytes,
                               .in_order = kOp == nic::Op::put ? puts_in_order_ : gets_in_order_});
  }
  [[gnu::always_inline]] Errc try_amo(const Place& place, std::uint8_t command, void* result, std::uint64_t a,
                                      std::uint64_t b) {
    return nic::try_fast_amo(place.target->endpoint,
                             {.transfer = {.key = place.key,
                                           .local_address = reinterpret_cast<std::uint64_t>(result),
                                           .remote_address = place.address,
                                           .length = nic::amo::width(command),
                                           .in_order = puts_in_order_},
                              .command = command,
                              .a = a,
                              .b = b});
  }

  // ---- the general path; takes the lock ----
  static nic::Request put_request(const Place& place, const void* local, std::uint64_t bytes);
  static nic::Request get_request(const Place& place, void* local, std::uint64_t bytes);
  static nic::Request amo_request(const Place& place, std::uint8_t command, void* result, std::uint64_t a,
                                  std::uint64_t b);
  // Starts it, counted in `tracker`; waits for room. ok: accepted.
  Errc start(const Place& place, nic::Request request, Tracker& tracker);
  Tracker& implicit() { return implicit_; }
  // Waits until nothing of it is left and says how it ended; forgets that. Errors: invalid_state: the world
  // has ended, and with it all that was under way.
  Errc wait(Tracker& tracker);
  // Whether nothing of it is left, after a look; then as wait(). not_done.
  Errc test(Tracker& tracker);
  // Whether wait() would return at once with ok. No lock.
  [[gnu::always_inline]] bool is_idle(const Tracker& tracker) const { return Completions::is_idle(tracker); }
  bool is_idle() const { return is_idle(implicit_); }
  // Whether something of implicit() is left, after a look.
  bool is_under_way();
  // How implicit() ended; that is forgotten.
  Errc take();

  // ---- names of operations ----
  // A handle whose operations are complete already.
  static constexpr std::uint64_t kComplete = 1;
  // A tracker with a name; `handle` names it.
  Tracker& open_named(std::uint64_t* handle);
  // The tracker of a handle of this context, or null.
  Tracker* find_named(std::uint64_t handle);
  void close_named(std::uint64_t handle);
  static std::uint32_t context_of(std::uint64_t handle) {
    return static_cast<std::uint32_t>(handle >> 52) & 0x3ff;
  }

  // Moves along what is under way.
  void progress();
  // Waits until the NIC has nothing of this context any more: it may go.
  // REQUIRES: no thread is in a call of it.
  void drain();

 private:
  struct Named {
    Tracker tracker;
    std::uint32_t generation = 0;
    bool used = false;
  };
  Target* reach(int pe);
  void reap(std::unique_lock<ShortLock>& lock);
  void await_end(std::unique_lock<ShortLock>& lock);
  Place find_in(SegKind kind, int pe, std::uint64_t offset);
  static dmapp_return_t no_bytes(const dmapp_seg_desc_t& segment) {
    return seg::well_formed(segment) ? DMAPP_RC_NOT_FOUND : DMAPP_RC_INVALID_PARAM;
  }

  World& world_;
  nic::Nic* nic_ = nullptr;
  nic::Port* port_ = nullptr;
  Completions completions_;  // guarded by mu_
  int pe_ = 0;
  int npes_ = 0;
  const std::uint32_t number_;
  bool puts_in_order_ = false;
  bool gets_in_order_ = false;
  std::uint16_t put_delivery_ = 0;
  std::uint16_t get_delivery_ = 0;
  std::uint64_t engine_bytes_ = UINT64_MAX;
  std::vector<std::unique_ptr<Target>> targets_;  // by PE; null: not reached yet
  ShortLock mu_;
  Tracker implicit_;
  std::deque<Named> named_;          // guarded by mu_; stay where they are
  std::vector<std::uint32_t> free_;  // places of named_; guarded by mu_
};

}  // namespace orrery::dmapp
