// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The parts of clock_worker that do what runtimes do: look at many sources, wait for what is not the NIC's,
// have threads beside the one that communicates, and time what they compute.
#include "tests/lib/gni/clock_world.hpp"

#include <atomic>
#include <cinttypes>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace clock_worker {

namespace {

constexpr int kRounds = 100;

// Puts back and forth; `wait` returns when the other one's has come.
template <typename Wait>
std::int64_t half_round_trip(World& w, Wait wait) {
  const int peer = 1 - w.rank();
  PMI_Barrier();
  const std::int64_t start = now_ns();
  for (int i = 0; i < kRounds; ++i) {
    auto pd = w.put(peer, 0, 8, GNI_CQMODE_REMOTE_EVENT);
    if (w.rank() == 1) wait();
    w.post(peer, pd);
    if (w.rank() == 0) wait();
  }
  const std::int64_t took = now_ns() - start;
  PMI_Barrier();
  return took / (2 * kRounds);
}

bool take(gni_cq_handle_t queue) {
  gni_cq_entry_t event = 0;
  return GNI_CqGetEvent(queue, &event) == GNI_RC_SUCCESS;
}

}  // namespace

void limited_looks(World& w) {
  for (const int looks : {1, 4, 16, 32}) {
    const std::int64_t start = now_ns();
    while (now_ns() < start + 2'000'000) {
      for (int i = 0; i < looks; ++i) (void)take(w.target);
    }
    std::printf("%d looks: %" PRId64 " ns\n", looks, now_ns() - start);
    usleep(1);
  }
}

void engines(World& w) {
  for (const std::size_t others : {0u, 5u, 40u}) {
    std::vector<gni_cq_handle_t> queues{w.target};
    for (std::size_t i = 0; i < others; ++i) queues.push_back(w.session.queue(16));
    for (const bool forth : {true, false}) {
      const std::int64_t took = half_round_trip(w, [&] {
        for (bool found = false; !found;) {
          for (std::size_t i = 0; i < queues.size() && !found; ++i)
            found = take(queues[forth ? i : queues.size() - 1 - i]);
        }
      });
      if (w.rank() == 0) std::printf("%zu queues: %" PRId64 " ns\n", queues.size(), took);
    }
  }
}

void counted_looks(World& w) {
  for (const int looks : {0, 1, 2, 4, 8, 16, 40}) {
    const std::int64_t took = half_round_trip(w, [&] {
      (void)w.await_remote();
      for (int i = 0; i < looks; ++i) (void)take(w.source);
    });
    if (w.rank() == 0) std::printf("%d looks: %" PRId64 " ns\n", looks, took);
  }
}

void kernels(World&) {
  constexpr int kKernels = 1000;
  volatile double sum = 0;
  const std::int64_t start = now_ns();
  timespec from{}, to{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
  std::int64_t in_kernels = 0;
  for (int i = 0; i < kKernels; ++i) {
    const std::int64_t before = now_ns();
    for (int k = 0; k < 40'000; ++k) sum = sum + k;
    in_kernels += now_ns() - before;
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
  const std::int64_t took = now_ns() - start;
  const std::int64_t used = (to.tv_sec - from.tv_sec) * 1'000'000'000 + to.tv_nsec - from.tv_nsec;
  std::printf("kernels %" PRId64 " all %" PRId64 " used %" PRId64 "\n", in_kernels, took, used);
}

void helpers(World& w, int how) {
  gni_cq_handle_t queue = nullptr;
  BENCH_REQUIRE(GNI_CqCreate(w.session.nic, 16, 0, GNI_CQ_BLOCKING, nullptr, nullptr, &queue));
  std::atomic<bool> over{false};
  std::thread helper([&] {
    while (!over) {
      gni_cq_entry_t event = 0;
      std::uint32_t which = 0;
      if (how == 0) (void)GNI_CqVectorMonitor(&queue, 1, 20, &which);
      if (how == 1) (void)GNI_CqWaitEvent(queue, 20, &event);
      if (how == 2) usleep(20'000);
      if (how == 3) (void)take(queue);
    }
  });
  PMI_Barrier();
  const std::int64_t start = now_ns();
  for (int i = 0; i < 1000; ++i) {
    auto pd = w.put(1 - w.rank(), 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    w.post(1 - w.rank(), pd);
    w.reap();
  }
  const std::int64_t took = now_ns() - start;
  PMI_Barrier();
  std::printf("PE %d: %" PRId64 " ns\n", w.rank(), took);
  std::fflush(stdout);
  over = true;
  helper.join();
}

void servers(World& w) {
  constexpr std::uint64_t kForEver = UINT64_MAX;
  const int peer = 1 - w.rank();
  gni_cq_handle_t asked = nullptr;
  BENCH_REQUIRE(GNI_CqCreate(w.session.nic, 64, 0, GNI_CQ_BLOCKING, nullptr, nullptr, &asked));
  alignas(4096) static std::byte room[4096];
  const bench::Window mine{reinterpret_cast<std::uint64_t>(room),
                           w.session.registered(room, sizeof room, asked)};
  const auto windows = bench::all_gather(mine, w.rank(), w.size());
  const gni_ep_handle_t answers = w.session.endpoint(peer, w.session.queue(16));
  std::thread server;
  if (w.rank() == 1) {
    server = std::thread([&] {
      for (int i = 0; i < kRounds; ++i) {
        gni_cq_entry_t event = 0;
        BENCH_REQUIRE(GNI_CqWaitEvent(asked, kForEver, &event));
        auto pd = w.put(peer, 0, 8, GNI_CQMODE_REMOTE_EVENT);
        pd.local_mem_hndl = w.local_handle;
        BENCH_REQUIRE(GNI_PostFma(answers, &pd));
      }
    });
    sleep_really_us(300'000);  // it waits
  }
  PMI_Barrier();
  const std::int64_t start = now_ns();
  for (int i = 0; w.rank() == 0 && i < kRounds; ++i) {
    auto pd = bench::put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_REMOTE_EVENT, w.local,
                                    windows[static_cast<std::size_t>(peer)], 0, 8);
    w.post(peer, pd);
    (void)w.await_remote();
  }
  const std::int64_t took = now_ns() - start;
  PMI_Barrier();
  if (w.rank() == 0) std::printf("answers: %" PRId64 " ns\n", took / (2 * kRounds));
  if (server.joinable()) server.join();
}

void joined(World& w) {
  const int peer = 1 - w.rank();
  std::atomic_flag device = ATOMIC_FLAG_INIT;
  const auto locked = [&](auto call) {
    while (device.test_and_set(std::memory_order_acquire)) {
    }
    const auto result = call();
    device.clear(std::memory_order_release);
    return result;
  };
  const auto await = [&] {
    // Without the lock, for the thread that spins for it.
    while (!locked([&] { return take(w.target); })) sched_yield();
  };
  const auto put = [&](gni_post_descriptor_t& pd) {
    pd = w.put(peer, 0, 8, GNI_CQMODE_REMOTE_EVENT);
    (void)locked([&] { return w.post(peer, pd), true; });
  };
  std::mutex mu;
  std::condition_variable changed;
  bool is_polled = false;
  int asked = 0, left[2] = {0, 0};
  const auto serve = [&](int self) {
    gni_post_descriptor_t answers[kRounds];
    for (int i = 0; i < kRounds / 2; ++i) {
      std::unique_lock lock(mu);
      while (left[self] == 0) {
        if (is_polled) {
          changed.wait(lock);
          continue;
        }
        is_polled = true;
        lock.unlock();
        await();
        lock.lock();
        is_polled = false;
        ++left[asked++ % 2];
        changed.notify_all();
      }
      --left[self];
      lock.unlock();
      put(answers[i]);
    }
  };
  PMI_Barrier();
  const std::int64_t start = now_ns();
  if (w.rank() == 0) {
    std::thread([&] {
      gni_post_descriptor_t asks[kRounds];
      for (gni_post_descriptor_t& ask : asks) {
        put(ask);
        await();
      }
    }).join();
    std::printf("answers: %" PRId64 " ns\n", (now_ns() - start) / (2 * kRounds));
  } else {
    std::thread first(serve, 0), second(serve, 1);
    first.join();
    second.join();
  }
  PMI_Barrier();
}

void outside(World& w, bool naps) {
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> there{false};
    std::thread other([&] {
      sleep_really_us(100'000 + 150'000 * ((w.rank() + round) % 2 == 0 ? 1 : 0));
      there = true;
    });
    const std::int64_t start = now_ns();
    while (!there) {
      (void)take(w.target);
      (void)take(w.source);
      if (naps) usleep(100);
    }
    const std::int64_t took = now_ns() - start;
    other.join();
    std::printf("PE %d: waited for %" PRId64 " ns\n", w.rank(), took);
    PMI_Barrier();
  }
}

void shared_flags(World& w, bool looks) {
  char name[64];
  std::snprintf(name, sizeof name, "/dev/shm/orrery-clock-worker.%d", getppid());
  const int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  bench::require(file >= 0 && ftruncate(file, 4096) == 0 ? GNI_RC_SUCCESS : GNI_RC_ERROR_RESOURCE, name);
  auto* const flags =
      static_cast<volatile int*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  close(file);
  PMI_Barrier();
  unlink(name);
  const auto await = [&](int pe, int round) {
    while (flags[pe] != round) {
      if (looks) (void)take(w.target);
    }
  };
  const int mine = w.rank(), others = 1 - w.rank();
  const std::int64_t start = now_ns();
  for (int round = 1; round <= 8; ++round) {
    if (mine == 0) await(others, round);
    usleep(mine == 0 ? 300 : 1000);
    flags[mine] = round;
    if (mine != 0) await(others, round);
    std::printf("PE %d: round %d over at %" PRId64 " ns\n", mine, round, now_ns() - start);
  }
}

void computes(World& w, bool reads_the_clock) {
  constexpr std::int64_t kRealNs = 1'500'000'000, kPartNs = 10'000'000;
  const std::int64_t start = now_ns();
  for (int round = 0; round < 4; ++round) {
    if (w.rank() == round % 2) {
      for (const std::int64_t end = real_ns() + kRealNs; real_ns() < end;) {
        for (const std::int64_t part = real_ns() + kPartNs; real_ns() < part;) {
        }
        if (reads_the_clock) (void)now_ns();
      }
      auto pd = w.put(1 - w.rank(), 0, 8, GNI_CQMODE_REMOTE_EVENT);
      if (round < 2) w.post(1 - w.rank(), pd);
    } else if (round < 2) {
      (void)w.await_remote();
    }
    if (round >= 2) PMI_Barrier();
  }
  std::printf("PE %d: took %" PRId64 " ns\n", w.rank(), now_ns() - start);
}

}  // namespace clock_worker
