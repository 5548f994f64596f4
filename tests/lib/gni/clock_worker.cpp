// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A client of uGNI and PMI like any other, that prints what it measures with clock_gettime(2); what it is to
// do is its first argument. clock_test.cpp runs it under virtual time.
#include "bench/common/clock.hpp"
#include "tests/lib/gni/clock_waits.hpp"
#include "tests/lib/gni/clock_world.hpp"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>
#include <time.h>
#include <unistd.h>

using namespace clock_worker;

namespace {

// One put at a time from PE 0 to the last, its own event awaited; then gets.
void latency(World& w) {
  const int last = w.size() - 1;
  if (w.rank() == 0) {
    for (const gni_post_type_t type :
         {GNI_POST_FMA_PUT, GNI_POST_FMA_GET, GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET}) {
      for (const std::uint64_t bytes : {8u, 64u, 4096u, 65536u}) {
        auto pd = w.put(last, 0, bytes, GNI_CQMODE_GLOBAL_EVENT, type);
        const std::int64_t start = now_ns();
        w.post(last, pd);
        w.reap();
        std::printf("type %d bytes %" PRIu64 " ns %" PRId64 "\n", static_cast<int>(type), bytes,
                    now_ns() - start);
      }
    }
  }
}

// How long puts of 8 B take from before the post until their event is taken, by the program's own readings.
void put_times(World& w) {
  if (w.rank() != 0) return;
  const bench::Stopwatch watch;
  std::vector<double> took(20'000);
  auto pd = w.put(1, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
  for (double& each : took) {
    const std::uint64_t start = bench::Stopwatch::ticks();
    w.post(1, pd);
    w.reap();
    each = watch.ns(bench::Stopwatch::ticks() - start);
  }
  std::sort(took.begin(), took.end());
  std::printf("put and event ns: p50 %.1f p99 %.1f worst %.1f\n", took[took.size() / 2],
              took[took.size() * 99 / 100], took.back());
}

// Puts back and forth, each answered when its event has come.
void ping_pong(World& w) {
  const int peer = 1 - w.rank();
  if (w.rank() > 1) return;
  for (const std::uint64_t bytes : {8u, 1024u, 65536u}) {
    const std::int64_t start = now_ns();
    constexpr int kRounds = 100;
    for (int i = 0; i < kRounds; ++i) {
      auto pd = w.put(peer, 0, bytes, GNI_CQMODE_REMOTE_EVENT | GNI_CQMODE_GLOBAL_EVENT);
      if (w.rank() == 1) (void)w.await_remote();
      w.post(peer, pd);
      if (w.rank() == 0) (void)w.await_remote();
      w.reap();
    }
    if (w.rank() == 0)
      std::printf("bytes %" PRIu64 " half round trip %" PRId64 " ns\n", bytes,
                  (now_ns() - start) / (2 * kRounds));
  }
}

// The same, with the data itself polled.
void memory_ping_pong(World& w) {
  const int peer = 1 - w.rank();
  if (w.rank() > 1) return;
  const auto* flag = reinterpret_cast<volatile std::uint64_t*>(w.window);
  auto* value = reinterpret_cast<std::uint64_t*>(w.local);
  const std::int64_t start = now_ns();
  constexpr std::uint64_t kRounds = 100;
  for (std::uint64_t i = 1; i <= kRounds; ++i) {
    auto pd = w.put(peer, 0, 8, 0);
    *value = i;
    if (w.rank() == 1) {
      while (*flag != i) {
      }
    }
    w.post(peer, pd);
    if (w.rank() == 0) {
      while (*flag != i) {
      }
    }
  }
  if (w.rank() == 0) std::printf("half round trip %" PRId64 " ns\n", (now_ns() - start) / (2 * 100));
}

std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  return x;
}

// Every PE puts to random others, 64 at a time under way.
void all_to_all(World& w, int count) {
  std::uint64_t state = static_cast<std::uint64_t>(w.rank()) + 1;
  std::vector<gni_post_descriptor_t> posts(64);
  int open = 0;
  const std::int64_t start = now_ns();
  for (int i = 0; i < count; ++i) {
    state = mixed(state + 0x9e3779b97f4a7c15ull);
    const int to = static_cast<int>(state % static_cast<std::uint64_t>(w.size()));
    if (open == 64) {
      w.reap();
      --open;
    }
    auto& pd = posts[static_cast<std::size_t>(i) % 64];
    pd = w.put(to, state / 4096 % 64 * 64, 8u << state % 7, GNI_CQMODE_GLOBAL_EVENT);
    w.post(to, pd);
    ++open;
  }
  for (; open > 0; --open) w.reap();
  const std::int64_t took = now_ns() - start;
  for (const std::int64_t each : bench::all_gather(took, w.rank(), w.size())) {
    if (w.rank() == 0) std::printf("%" PRId64 "\n", each);
  }
}

// All put to PE 0, which counts their events.
void hot_spot(World& w) {
  constexpr int kEach = 50;
  if (w.rank() == 0) {
    std::vector<int> seen(static_cast<std::size_t>(w.size()));
    for (int i = 0; i < kEach * (w.size() - 1); ++i) {
      const std::uint32_t from = w.await_remote();
      ++seen[from];
      if (i % 7 == 0) std::printf("%d from %u at %" PRId64 "\n", i, from, now_ns());
    }
  } else {
    for (int i = 0; i < kEach; ++i) {
      auto pd = w.put(0, 64 * static_cast<std::uint64_t>(w.rank()), 512,
                      GNI_CQMODE_REMOTE_EVENT | GNI_CQMODE_GLOBAL_EVENT);
      w.post(0, pd);
      w.reap();
    }
  }
}

// Tasks are taken from a counter at PE 0 by fetch-and-add; which PE gets which depends on time alone.
void work_stealing(World& w) {
  auto* got = reinterpret_cast<std::uint64_t*>(w.local);
  std::string mine;
  for (;;) {
    gni_post_descriptor_t pd = w.put(0, 8, 8, GNI_CQMODE_GLOBAL_EVENT, GNI_POST_AMO);
    pd.amo_cmd = GNI_FMA_ATOMIC_FADD;
    pd.first_operand = 1;
    w.post(0, pd);
    w.reap();
    if (*got >= 200) break;
    mine += " " + std::to_string(*got);
    usleep(static_cast<useconds_t>(mixed(*got) % 5));
  }
  std::printf("PE %d at %" PRId64 ":%s\n", w.rank(), now_ns(), mine.c_str());
}

// A program that waits for a time by looking at the clock, and by sleeping.
void timeouts(World& w) {
  const std::int64_t start = now_ns();
  while (now_ns() < start + 50'000) {
  }
  const std::int64_t looked = now_ns();
  usleep(100 + static_cast<useconds_t>(w.rank()));
  const std::int64_t slept = now_ns();
  gni_cq_entry_t event = 0;
  int polls = 0;
  while (now_ns() < slept + 20'000 && GNI_CqGetEvent(w.target, &event) == GNI_RC_NOT_DONE) ++polls;
  std::printf("PE %d: %" PRId64 " %" PRId64 " %" PRId64 " %d polls\n", w.rank(), looked - start,
              slept - looked, now_ns() - slept, polls);
}

// The same, while the last PE's turns come often and are long in real time, as on a busy host.
void slow_turns(World& w) {
  if (w.rank() != w.size() - 1) return timeouts(w);
  for (int i = 0; i < 300; ++i) {
    const timespec moment{0, 1000};
    nanosleep(&moment, nullptr);
    sleep_really_us(20);
  }
}

// Memory taken and given back between two looks at the clock, as any allocator likes it: no time passes.
void allocations(World& w) {
  const std::int64_t start = now_ns();
  std::vector<void*> blocks(2000);
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = std::malloc(1 + i * 37 % 65536);
    for (void* const block : blocks) std::free(block);
  }
  std::printf("PE %d: %" PRId64 " ns\n", w.rank(), now_ns() - start);
}

// Puts of all the others, several under way, to words of PE 0, which reads them in turn.
void to_one(World& w) {
  constexpr std::uint64_t kEach = 8;
  if (w.rank() != 0) {
    auto* values = reinterpret_cast<std::uint64_t*>(w.local);
    for (std::uint64_t i = 0; i < kEach; ++i) {
      values[i] = i + 1;
      auto pd = w.put(0, (static_cast<std::uint64_t>(w.rank()) * kEach + i) * 8, 8, 0);
      pd.local_addr += i * 8;
      w.post(0, pd);
    }
    return;
  }
  const auto* words = reinterpret_cast<volatile std::uint64_t*>(w.window);
  for (std::uint64_t i = kEach; i < kEach * static_cast<std::uint64_t>(w.size()); ++i) {
    while (words[i] == 0) {
    }
    std::printf("word %" PRIu64 " is %" PRIu64 " at %" PRId64 "\n", i, words[i], now_ns());
  }
}

// Threads that read beside the one that polls: what it polls is taken away from time to time, and given back
// while they come to it.
void threads(World& w) {
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> seen{0};
  std::vector<std::thread> readers;
  for (std::size_t i = 0; i < 3; ++i) {
    readers.emplace_back([&, i] {
      const auto* word = reinterpret_cast<volatile std::uint64_t*>(w.window + 1024 * (i + 1));
      while (!over.load(std::memory_order_relaxed)) seen.fetch_add(1 + *word, std::memory_order_relaxed);
    });
  }
  for (int i = 0; i < 3; ++i) memory_ping_pong(w);
  over = true;
  for (std::thread& reader : readers) reader.join();
  if (seen == 0) std::printf("nothing was read\n");
}

// Memory that is registered for peers to read alone is the program's own to write, also when it has computed
// for so long that memory is watched.
void read_only(World& w) {
  auto* own = static_cast<volatile std::uint64_t*>(std::aligned_alloc(4096, 4096));
  gni_mem_handle_t handle{};
  BENCH_REQUIRE(GNI_MemRegister(w.session.nic, reinterpret_cast<std::uint64_t>(own), 4096, nullptr,
                                GNI_MEM_READ_ONLY, UINT32_MAX, &handle));
  timespec used{};
  do {
    *own = *own + 1;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  } while (used.tv_sec == 0 && used.tv_nsec < 300'000'000);
  memory_ping_pong(w);
  BENCH_REQUIRE(GNI_MemDeregister(w.session.nic, &handle));
  std::free(const_cast<std::uint64_t*>(own));
}

// What the papers print, by the programs that they describe: data that arrives is seen by reading it.
void figures(World& w) {
  const int peer = 1 - w.rank();
  auto* value = reinterpret_cast<std::uint64_t*>(w.local);
  const auto* flag = reinterpret_cast<volatile std::uint64_t*>(w.window);
  constexpr int kRounds = 50;
  const std::int64_t start = now_ns();
  for (std::uint64_t i = 1; i <= kRounds; ++i) {
    auto pd = w.put(peer, 0, 8, 0);
    *value = i;
    if (w.rank() == 0) w.post(peer, pd);
    while (*flag != i) {
    }
    if (w.rank() == 1) w.post(peer, pd);
  }
  if (w.rank() != 0) return;
  std::printf("put 8 B ns %g\n", static_cast<double>(now_ns() - start) / (2 * kRounds));
  auto* landing = reinterpret_cast<volatile std::uint64_t*>(w.local + 4096);
  const std::int64_t before = now_ns();
  for (int i = 0; i < kRounds; ++i) {
    *landing = UINT64_MAX;
    auto pd = w.put(peer, 64, 8, 0, GNI_POST_FMA_GET);
    pd.local_addr = reinterpret_cast<std::uint64_t>(landing);
    w.post(peer, pd);
    while (*landing == UINT64_MAX) {
    }
  }
  std::printf("get 8 B ns %g\n", static_cast<double>(now_ns() - before) / kRounds);
}

// Block transfers of 256 KiB, 16 under way.
void bandwidth(World& w) {
  const int peer = 1 - w.rank();
  constexpr std::uint64_t kBytes = 256 << 10;
  for (const bool both : {false, true}) {
    PMI_Barrier();
    const std::int64_t start = now_ns();
    constexpr int kCount = 200, kWindow = 16;
    std::vector<gni_post_descriptor_t> posts(kWindow);
    if (w.rank() == 0 || both) {
      for (int i = 0; i < kCount; ++i) {
        if (i >= kWindow) w.reap();
        auto& pd = posts[static_cast<std::size_t>(i) % kWindow];
        pd = w.put(peer, 0, kBytes, GNI_CQMODE_GLOBAL_EVENT, GNI_POST_RDMA_PUT);
        w.post(peer, pd);
      }
      for (int i = 0; i < kWindow; ++i) w.reap();
    }
    const double seconds = static_cast<double>(now_ns() - start) / 1e9;
    if (w.rank() == 0)
      std::printf("%s MB/s %.1f\n", both ? "both ways" : "one way",
                  kCount * static_cast<double>(kBytes) / 1e6 / seconds);
  }
}

void deadlock(World& w) { (void)w.await_remote(); }

void deadlock_blocking(World& w) {
  gni_cq_handle_t queue = nullptr;
  BENCH_REQUIRE(GNI_CqCreate(w.session.nic, 16, 0, GNI_CQ_BLOCKING, nullptr, nullptr, &queue));
  gni_cq_entry_t event = 0;
  (void)GNI_CqWaitEvent(queue, UINT64_MAX, &event);
}

void deadlock_memory(World& w) {
  const auto* flag = reinterpret_cast<volatile std::uint64_t*>(w.window);
  while (*flag == 0) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::int64_t first = now_ns();
  World w;
  if (what == "start")
    std::printf("PE %d: joined after %lld ns\n", w.rank(), static_cast<long long>(now_ns() - first));
  if (what == "engines") engines(w);
  if (what == "counted_looks") counted_looks(w);
  if (what == "limited_looks") limited_looks(w);
  if (what == "kernels") kernels(w);
  if (what == "helpers") helpers(w, argc > 2 ? std::atoi(argv[2]) : 0);
  if (what == "servers") servers(w);
  if (what == "channels") channels(w, argc > 2 ? std::atoi(argv[2]) : 0);
  if (what == "late_sleep") late_sleep(w);
  if (what == "steps_between_looks") steps_between_looks(w, argc > 2);
  if (what == "errors") errors(w, argc > 2 && std::atoi(argv[2]) != 0);
  if (what == "shared_flags") shared_flags(w, argc > 2);
  if (what == "outside") outside(w, argc > 2);
  if (what == "wire_up") wire_up(w, argc > 2 ? std::atoi(argv[2]) : 0);
  if (what == "latency") latency(w);
  if (what == "put_times") put_times(w);
  if (what == "ping_pong") ping_pong(w);
  if (what == "memory") memory_ping_pong(w);
  if (what == "all_to_all") all_to_all(w, argc > 2 ? std::atoi(argv[2]) : 100);
  if (what == "hot_spot") hot_spot(w);
  if (what == "stealing") work_stealing(w);
  if (what == "timeouts") timeouts(w);
  if (what == "slow_turns") slow_turns(w);
  if (what == "allocations") allocations(w);
  if (what == "to_one") to_one(w);
  if (what == "messages") messages(w);
  if (what == "engine_messages") engine_messages(w);
  if (what == "computes") computes(w, argc > 2);
  if (what == "shared_queue") shared_queue(w);
  if (what == "told_late") told_late(w);
  if (what == "one_by_one") one_by_one(w);
  if (what == "reduce") reduce(w, GNI_CE_MAX_CHILDREN);
  if (what == "reduce_tree") reduce(w, 6);
  if (what == "joined") joined(w);
  if (what == "threads") threads(w);
  if (what == "newcomers") newcomers(w, argc > 2 ? std::atoi(argv[2]) : 0, argc > 3);
  if (what == "background") background(w);
  if (what == "read_only") read_only(w);
  if (what == "polled_gets") polled_gets(w);
  if (what == "told_gets") told_gets(w);
  if (what == "figures") figures(w);
  if (what == "bandwidth") bandwidth(w);
  if (what == "waits") timed_waits();
  if (what == "deadlock") deadlock(w);
  if (what == "deadlock_blocking") deadlock_blocking(w);
  if (what == "deadlock_memory") deadlock_memory(w);
  PMI_Barrier();
  return 0;
}
