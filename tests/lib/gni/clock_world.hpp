// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

#pragma once

#include "bench/common/session.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// What the parts of clock_worker have in common: memory that every PE may write, and an endpoint to each.
namespace clock_worker {

inline constexpr std::size_t kRoom = 1 << 20;

inline std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

// In real time.
inline void sleep_really_us(long us) {
  const timespec span{us / 1'000'000, us % 1'000'000 * 1'000};
  syscall(SYS_nanosleep, &span, nullptr);
}

inline std::int64_t real_ns() {
  timespec t{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

// With CLOCK_JITTER in the environment, a number: some of the program's calls take a moment of real time, at
// random. Virtual time knows nothing of it.
inline void jitter() {
  static const char* const seed = std::getenv("CLOCK_JITTER");
  if (seed == nullptr) return;
  thread_local std::minstd_rand random(static_cast<unsigned>(std::strtoul(seed, nullptr, 10)) + 1 +
                                       static_cast<unsigned>(getpid()));
  const auto drawn = random();
  if (drawn % 30 == 0) sleep_really_us(static_cast<long>(drawn / 30 % 150));
  if (drawn % 5000 == 7) sleep_really_us(20'000);
}

struct World {
  bench::Session session;
  gni_cq_handle_t source = session.queue(1024), target = session.queue(4096);
  std::byte* window = nullptr;
  std::byte* local = nullptr;
  gni_mem_handle_t local_handle{};
  std::vector<bench::Window> windows;
  std::vector<gni_ep_handle_t> eps;

  World() {
    window = static_cast<std::byte*>(std::aligned_alloc(4096, kRoom));
    local = static_cast<std::byte*>(std::aligned_alloc(4096, kRoom));
    std::memset(window, 0, kRoom);
    std::memset(local, 0, kRoom);
    local_handle = session.registered(local, kRoom);
    const bench::Window mine{reinterpret_cast<std::uint64_t>(window),
                             session.registered(window, kRoom, target)};
    windows = bench::all_gather(mine, session.rank, session.size);
    for (int pe = 0; pe < session.size; ++pe) {
      eps.push_back(session.endpoint(pe, source));
      BENCH_REQUIRE(GNI_EpSetEventData(eps.back(), 0, static_cast<std::uint32_t>(session.rank)));
    }
    PMI_Barrier();
  }
  int rank() const { return session.rank; }
  int size() const { return session.size; }

  void post(int pe, gni_post_descriptor_t& pd) {
    jitter();
    const bool block = pd.type == GNI_POST_RDMA_PUT || pd.type == GNI_POST_RDMA_GET;
    pd.local_mem_hndl = local_handle;
    gni_return_t rc = GNI_RC_SUCCESS;
    const gni_ep_handle_t ep = eps[static_cast<std::size_t>(pe)];
    while ((rc = block ? GNI_PostRdma(ep, &pd) : GNI_PostFma(ep, &pd)) == GNI_RC_ERROR_RESOURCE) reap_one();
    bench::require(rc, "post");
  }
  bool reap_one() {
    jitter();
    gni_cq_entry_t event = 0;
    const gni_return_t rc = GNI_CqGetEvent(source, &event);
    if (rc == GNI_RC_NOT_DONE) return false;
    bench::require(rc, "GNI_CqGetEvent");
    gni_post_descriptor_t* done = nullptr;
    bench::require(GNI_GetCompleted(source, event, &done), "GNI_GetCompleted");
    return true;
  }
  void reap() {
    while (!reap_one()) {
    }
  }
  std::uint32_t await_remote() {
    gni_cq_entry_t event = 0;
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_CqGetEvent(target, &event)) == GNI_RC_NOT_DONE) jitter();
    jitter();
    bench::require(rc, "GNI_CqGetEvent");
    return static_cast<std::uint32_t>(gni_cq_get_rem_inst_id(event));
  }
  gni_post_descriptor_t put(int pe, std::uint64_t offset, std::uint64_t bytes, std::uint16_t events,
                            gni_post_type_t type = GNI_POST_FMA_PUT) const {
    return bench::put_descriptor(type, events, local, windows[static_cast<std::size_t>(pe)], offset, bytes);
  }
};

// clock_gets.cpp
// Three PEs: PE 0 polls what its get from PE 1 brings, while the others wait or sleep.
void polled_gets(World& w);
// Three PEs: PE 1 is told of PE 0's get, which sleeps, and puts to PE 2, which sleeps for half as long.
void told_gets(World& w);
// clock_looks.cpp
// Puts back and forth by a program that looks at one queue, and at many, in either order.
void limited_looks(World& w);
void engines(World& w);
// The same, with so many looks in vain before each answer.
void counted_looks(World& w);
// Timed kernels of some tens of microseconds.
void kernels(World& w);
// Puts beside a thread that waits, at most 20 ms each time: on a queue in two ways, by sleeping, by looking.
void helpers(World& w, int how);
// Two PEs: a thread of PE 1 waits for puts of PE 0 and answers each, while its main thread is in a barrier.
void servers(World& w);
// Two PEs whose main threads wait for the end of others: a thread of PE 0 puts, and two threads of PE 1
// answer in turns. One of those looks at the queue, the other one waits on a condition; both take a lock
// around each call.
void joined(World& w);
// Looks in vain until something has come that is not the NIC's, with sleeps between or without.
void outside(World& w, bool naps);
// Two PEs that wait for flags in memory which they share past the NIC, and sleep behind each: without a call,
// or with looks at a queue.
void shared_flags(World& w, bool looks);
// Two PEs in turns: one computes for seconds without a call, or reading the clock now and then, and puts; the
// other one looks at its queue, or waits at the launcher's barrier.
void computes(World& w, bool reads_the_clock);
// clock_reports.cpp
// Two PEs: puts back and forth, each told of by a completion channel. `how`: 0 the blocking call alone, 1
// poll, 2 select, 3 epoll_wait with a limit before it, 4 the call again and again.
void channels(World& w, int how);
// A thread waits for an event; the main one is outside the clock for a while, and then sleeps.
void late_sleep(World& w);
// Each PE puts to the next one after so many looks in vain, which it counts by itself, with nothing under way
// that could end them. `brought`: PE 1 begins when its child has written to a pipe.
void steps_between_looks(World& w, bool brought);
// Puts that miss, with an event and without, and what a subscriber that looks, or waits, hears of them.
void errors(World& w, bool waits);
// clock_threads.cpp
// Two PEs: PE 0 puts, and a thread that PE 1 has just created waits for that and answers. `how` PE 1's main
// thread waits meanwhile: 0 in the launcher's barrier, 1 by looking, 2 by sleeping, 3 for that thread.
// `late`: that one computes until the main thread has slept, once.
void newcomers(World& w, int how, bool late);
// Two PEs that put beside threads which do not communicate: how long the puts take.
void background(World& w);
// clock_wire_up.cpp
// Two PEs: PE 1 finds a datagram and a put, by an engine that is in that round when both are there.
void wire_up(World& w, int round);
// clock_messages.cpp
void messages(World& w);
void engine_messages(World& w);
void shared_queue(World& w);
void told_late(World& w);
void one_by_one(World& w);
// `branch`: PEs below each engine.
void reduce(World& w, int branch);

}  // namespace clock_worker
