// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/portals3/process.hpp"

#include "emu/base/start_thread.hpp"
#include "emu/base/wait.hpp"
#include "lib/common/match_wait.hpp"

#include <algorithm>
#include <ctime>
#include <thread>
#include <vector>

#include <unistd.h>

namespace orrery::portals3 {

namespace {

constexpr std::uint8_t kProtectionTag = 252;
constexpr std::uint32_t kCookie = 0x50336e69;
// How long the first message to a process of the program waits for its interface.
constexpr std::int64_t kStartNs = 5'000'000'000;

std::atomic<Process*> g_process{nullptr};

}  // namespace

Process& Process::get() {
  Process* process = g_process.load(std::memory_order_acquire);
  if (process != nullptr) return *process;
  // Never deleted: exit handlers of the program may call. A child of fork() begins anew.
  auto* const made = new Process;
  if (!g_process.compare_exchange_strong(process, made)) {
    delete made;
    return *process;
  }
  common::forget_in_time([] {
    // What calls of other threads may still use stays reachable.
    static auto* const kept = new std::vector<Process*>;
    kept->push_back(g_process.exchange(new Process, std::memory_order_acq_rel));
  });
  return *made;
}

int Process::begin(ptl_pid_t wanted) {
  if (!is_started()) {
    match::Shape shape;
    shape.entries = 65536;
    shape.headers = 1;
    shape.queues = 1024;
    shape.counters = 1;
    shape.triggers = 1;
    shape.ring_bytes = 128u << 20;
    shape.descriptors = shape.entries;
    shape.accesses = kAccesses;
    shape.flights = 1;
    const Status started = start({.protection_tag = kProtectionTag,
                                  .cookie = kCookie,
                                  .place = 1,
                                  .shape = shape,
                                  .pids = kPids,
                                  .has_pid = {}});
    if (started.code() == Errc::no_memory) return PTL_NO_SPACE;
    if (!started.ok()) return PTL_FAIL;
  }
  if (ranks.rank < 0 && !take_ranks_from_environment(&ranks)) return PTL_FAIL;
  const auto rank = static_cast<std::size_t>(ranks.rank);
  std::uint32_t pid = wanted;
  if (wanted == PTL_PID_ANY && rank < ranks.pids.size()) pid = ranks.pids[rank];
  const std::uint32_t preferred =
      ranks.size > 1 ? static_cast<std::uint32_t>(ranks.rank) + 1 : self().name.slot + 1u;
  const Status signed_on = sign_on(pid == PTL_PID_ANY ? kAnyPid : pid, preferred);
  if (!signed_on.ok()) return signed_on.code() == Errc::no_resource ? PTL_NO_SPACE : PTL_PID_INVALID;
  return PTL_OK;
}

void Process::end() {
  {
    const std::lock_guard lock(handlers_mu_);
    handlers_.clear();
  }
  sign_off();
}

ptl_nid_t Process::own_nid() const {
  const auto rank = static_cast<std::size_t>(ranks.rank);
  return ranks.rank >= 0 && rank < ranks.nids.size() ? ranks.nids[rank] : nid();
}

Peer* Process::find_target(ptl_process_id_t id) {
  // Numbers that the program gave its nodes: this host is all of them.
  const bool given = std::find(ranks.nids.begin(), ranks.nids.end(), id.nid) != ranks.nids.end();
  const match::ProcessId where{given ? nid() : id.nid, id.pid};
  Peer* const peer = find(where);
  if (peer != nullptr || clock() != nullptr || !is_expected(id) || has_met(where)) return peer;
  return await(where);
}

// Whether a process of that id belongs to the program, and may not have opened its interface yet.
bool Process::is_expected(ptl_process_id_t id) const {
  if (!ranks.pids.empty()) return std::find(ranks.pids.begin(), ranks.pids.end(), id.pid) != ranks.pids.end();
  return ranks.size > 1 && id.pid <= static_cast<ptl_pid_t>(ranks.size);
}

// A launcher of the machine starts all processes before any of them runs; here they come one by one. Each is
// waited for once.
Peer* Process::await(match::ProcessId id) {
  {
    const std::lock_guard lock(awaited_mu_);
    if (!awaited_.insert(std::uint64_t{id.nid} << 32 | id.pid).second) return nullptr;
  }
  const std::int64_t limit = monotonic_ns() + kStartNs;
  for (;;) {
    Peer* const peer = find(id);
    if (peer != nullptr || monotonic_ns() > limit) return peer;
    const timespec pause{0, 200'000};
    nanosleep(&pause, nullptr);
  }
}

// Memory that an entry named need not be there any more when the interface has been closed.
bool Process::has_closed(const Peer& peer) {
  return peer.match && std::atomic_ref<std::uint32_t>(peer.match.interface(kInterface).open)
                               .load(std::memory_order_acquire) == 0;
}

bool Process::is_ending(const Peer& peer, match::Fail fail) const {
  // Memory that is not there is a program's mistake far more often.
  const std::int64_t limit = monotonic_ns() + (fail == match::kSegv ? 100'000'000 : 1'000'000'000);
  while (is_alive(peer) && !has_closed(peer)) {
    if (monotonic_ns() > limit) return false;
    const timespec pause{0, 200'000};
    nanosleep(&pause, nullptr);
  }
  return true;
}

// ---- handlers of event queues ----

void Process::serve(std::uint32_t queue, ptl_eq_handler_t handler) {
  const std::lock_guard lock(handlers_mu_);
  handlers_[queue] = handler;
  if (!thread_) start_detached_thread("orrery-events", [this] { run_handlers(); });
  thread_ = true;
}

void Process::serve_no_more(std::uint32_t queue) {
  const std::lock_guard lock(handlers_mu_);
  handlers_.erase(queue);
}

void Process::run_handlers() {
  match::Header& header = own().header();
  const auto deliver = [this] {
    bool any = false;
    std::map<std::uint32_t, ptl_eq_handler_t> handlers;
    {
      const std::lock_guard lock(handlers_mu_);
      handlers = handlers_;
    }
    for (const auto& [queue, handler] : handlers) {
      match::EventRecord record;
      std::uint64_t sequence = 0;
      if (match::take(own(), queue, &record, &sequence) == match::Took::empty) continue;
      any = true;
      ptl_event_t event;
      translate(queue, record, sequence, &event);
      handler(&event);
    }
    return any;
  };
  for (;;) {
    header.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t bell = header.bell.load(std::memory_order_seq_cst);
    if (!deliver()) futex_wait(header.bell, bell, std::nullopt);
    header.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }
}

}  // namespace orrery::portals3
