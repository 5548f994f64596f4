// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/check.hpp"
#include "emu/nic/target/match_unit.hpp"

#include <cstdint>

#include <sys/mman.h>

namespace orrery::nic::match {

inline constexpr Shape kSmallShape{
    .entries = 4096, .headers = 4096, .queues = 8, .counters = 64, .triggers = 256, .ring_bytes = 4u << 20};

// A match unit of its own, in shared memory, so that forked children reach it: one matching interface with
// physical addresses, one event queue, one portal.
class Bench {
 public:
  static constexpr std::uint32_t kMatchingPhysical = 1u << 0 | 1u << 3;

  explicit Bench(std::uint32_t portal_options = 0, const Shape& shape = kSmallShape,
                 std::uint64_t events = 2048)
      : bytes_(bytes_of(shape)) {
    base_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ORRERY_CHECK(base_ != MAP_FAILED, "no memory for a match unit");
    view = View::create(base_, shape);
    Session session(view);
    Interface& interface = view.interface(0);
    interface.open = 1;
    interface.options = kMatchingPhysical;
    interface.portals = 16;
    interface.max_list = interface.max_entries = shape.entries;
    interface.max_headers = shape.headers;
    interface.max_triggers = shape.triggers;
    queue = allocate(session, view.header().queue_pool,
                     [&](std::uint32_t i) -> EventQueue& { return view.queue(i); });
    EventQueue& ring = view.queue(queue);
    ring.ring = view.header().rings;
    ring.capacity = events + kSpareSlots;
    ring.used = 1;
    portal = open_portal(session, 0, kAny, portal_options, queue).value();
  }
  ~Bench() { munmap(base_, bytes_); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  NewEntry entry(std::uint64_t bits, std::uint64_t user, std::uint32_t options = kOpPut | kOpGet) const {
    NewEntry what;
    what.portal = portal;
    what.match_bits = bits;
    what.user = user;
    what.options = options;
    what.start = 0x10000;
    what.length = 64;
    return what;
  }
  Arrival message(std::uint64_t bits, std::uint64_t length = 8) const {
    Arrival arrival;
    arrival.portal = portal;
    arrival.match_bits = bits;
    arrival.length = length;
    arrival.initiator = {1, 2};
    return arrival;
  }
  Result<Appended> put_in(const NewEntry& what) const {
    Session session(view);
    return append(session, what);
  }
  // A whole message, as its initiator carries it out.
  Verdict send(const Arrival& arrival) const {
    Verdict verdict;
    {
      Session session(view);
      verdict = accept(session, arrival);
    }
    if (verdict.fail == kDelivered) {
      Session session(view);
      finish(session, arrival, verdict, kDelivered);
    }
    return verdict;
  }
  bool next(EventRecord* event) const { return take(view, queue, event) != Took::empty; }
  // The type of the next event, -1 when there is none.
  int next_type() const {
    EventRecord event{};
    return next(&event) ? event.type : -1;
  }
  std::uint32_t new_counter() const {
    Session session(view);
    const std::uint32_t index = allocate(session, view.header().counter_pool,
                                         [&](std::uint32_t i) -> Counter& { return view.counter(i); });
    view.counter(index).used = 1;
    return index;
  }

  View view;
  std::uint32_t queue = 0;
  std::uint32_t portal = 0;
  void* base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_;
  void* base_;
};

}  // namespace orrery::nic::match
