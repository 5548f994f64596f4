// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/match_state.hpp"

#include "emu/base/check.hpp"
#include "emu/base/robust_lock.hpp"
#include "emu/nic/target/match_journal.hpp"

#include <cerrno>
#include <climits>

namespace orrery::nic::match {

View View::create(void* base, const Shape& shape) {
  View view;
  view.base_ = static_cast<std::byte*>(base);
  Header& header = view.header();
  std::uint64_t at = (sizeof(Header) + kApart - 1) / kApart * kApart;
  const auto place = [&](std::uint64_t bytes) {
    const std::uint64_t here = at;
    at = (at + bytes + kApart - 1) / kApart * kApart;
    return here;
  };
  header.interfaces = place(kInterfaces * sizeof(Interface));
  header.portals = place(kInterfaces * kMaxPortals * sizeof(PortalEntry));
  header.buckets = place(std::uint64_t{kBuckets} * sizeof(Bucket));
  header.entries = place(shape.entries * sizeof(Entry));
  header.headers = place(shape.headers * sizeof(Unexpected));
  header.queues = place(shape.queues * sizeof(EventQueue));
  header.counters = place(shape.counters * sizeof(Counter));
  header.triggers = place(shape.triggers * sizeof(Trigger));
  header.rings = place(shape.ring_bytes);
  header.descriptors = place(shape.descriptors * sizeof(Descriptor));
  header.accesses = place(shape.accesses * sizeof(Access));
  header.flights = place(shape.flights * kFlightBytes);
  header.descriptor_count = shape.descriptors;
  header.access_count = shape.accesses;
  header.bytes = at;
  header.ring_bytes = shape.ring_bytes;
  header.entry_pool = {0, 1, shape.entries, 0};
  header.header_pool = {0, 1, shape.headers, 0};
  header.queue_pool = {0, 1, shape.queues, 0};
  header.counter_pool = {0, 1, shape.counters, 0};
  header.trigger_pool = {0, 1, shape.triggers, 0};
  header.flight_pool = {0, 1, shape.flights, 0};
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  for (pthread_mutex_t* mutex : {&header.lock, &header.atomics, &header.executing})
    pthread_mutex_init(mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  header.magic = kMagic;
  header.version = kVersion;
  // Release: a peer that sees it sees the layout.
  header.ready.store(1, std::memory_order_release);
  return view;
}

Result<View> View::open(void* base, std::uint64_t bytes) {
  if (bytes < sizeof(Header)) return Errc::corrupt;
  View view;
  view.base_ = static_cast<std::byte*>(base);
  const Header& header = view.header();
  if (header.ready.load(std::memory_order_acquire) == 0) return Errc::not_done;
  const auto fits = [&](std::uint64_t offset, std::uint64_t count, std::uint64_t size) {
    return offset % 16 == 0 && offset >= sizeof(Header) && offset <= bytes &&
           count <= (bytes - offset) / size;
  };
  if (header.magic != kMagic || header.version != kVersion || header.bytes > bytes ||
      !fits(header.interfaces, kInterfaces, sizeof(Interface)) ||
      !fits(header.portals, kInterfaces * kMaxPortals, sizeof(PortalEntry)) ||
      !fits(header.buckets, kBuckets, sizeof(Bucket)) ||
      !fits(header.entries, header.entry_pool.capacity, sizeof(Entry)) ||
      !fits(header.headers, header.header_pool.capacity, sizeof(Unexpected)) ||
      !fits(header.queues, header.queue_pool.capacity, sizeof(EventQueue)) ||
      !fits(header.counters, header.counter_pool.capacity, sizeof(Counter)) ||
      !fits(header.triggers, header.trigger_pool.capacity, sizeof(Trigger)) ||
      !fits(header.rings, header.ring_bytes, 1) ||
      !fits(header.descriptors, header.descriptor_count, sizeof(Descriptor)) ||
      (header.descriptor_count != 0 && header.descriptor_count < header.entry_pool.capacity) ||
      !fits(header.accesses, header.access_count, sizeof(Access)) ||
      !fits(header.flights, header.flight_pool.capacity, kFlightBytes))
    return Errc::corrupt;
  return view;
}

void Session::lock(int got) {
  // A holder is done in less time than the kernel takes to put this thread to sleep.
  constexpr int kTries = 200;
  for (int i = 0; i < kTries && got == EBUSY; ++i) {
    cpu_relax();
    got = pthread_mutex_trylock(&header_.lock);
  }
  if (got == EBUSY) got = lock_robust(header_.lock);
  if (got == EOWNERDEAD) {
    roll_back();
    publish_all();
    pthread_mutex_consistent(&header_.lock);
  } else {
    ORRERY_CHECK(got == 0, "the lock of a match unit cannot be taken");
  }
}

// Takes back what a holder that died had begun, last change first. May itself be killed: the next holder
// begins again from the same journal, and storing an old value twice does no harm.
void Session::roll_back() {
  const std::uint32_t used = header_.journal_used < kJournal ? header_.journal_used : kJournal;
  for (std::uint32_t i = used; i != 0; --i) {
    const JournalLine& line = header_.journal[i - 1];
    if (line.bytes > 8 || line.offset + line.bytes > header_.bytes) continue;
    std::memcpy(view_.base() + line.offset, &line.before, line.bytes);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  commit();
}

void Session::publish_all() {
  for (std::uint32_t i = 1; i < header_.queue_pool.fresh && i < header_.queue_pool.capacity; ++i) {
    EventQueue& queue = view_.queue(i);
    if (queue.used == 0 || queue.capacity == 0) continue;
    const std::uint64_t head = std::atomic_ref<std::uint64_t>(queue.head).load(std::memory_order_acquire);
    for (std::uint64_t p = head > queue.floor ? head : queue.floor; p < queue.tail; ++p)
      std::atomic_ref<std::uint64_t>(view_.slot(queue, p).published).store(p + 1, std::memory_order_release);
  }
}

void Session::overflow() {
  ORRERY_CHECK(false, "a change of a match unit has more parts than its journal holds");
  __builtin_unreachable();
}

void Session::wake() {
  header_.bell.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(header_.bell, INT_MAX);
}

}  // namespace orrery::nic::match
