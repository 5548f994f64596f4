// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Threads that the program creates under virtual time, while the job runs.
#include "tests/lib/gni/clock_world.hpp"

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include <pmi.h>
#include <pthread.h>
#include <threads.h>
#include <unistd.h>

namespace clock_worker {

namespace {

constexpr int kCreations = 12;
// Sanitizers know nothing of thrd_create().
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kWays = 2;
#else
constexpr int kWays = 3;
#endif
constexpr std::uint64_t kNoLimit = UINT64_MAX;

void compute_really_us(std::int64_t us) {
  for (const std::int64_t end = real_ns() + us * 1000; real_ns() < end;) {
  }
}

// What a thread of PE 1 answers with.
struct Server {
  World& w;
  gni_ep_handle_t answers;
  gni_cq_handle_t asked = nullptr;
  std::atomic<bool> answered{false}, has_slept{false};
  int round = 0;
  bool is_late = false;

  // The first that the clock hears of this thread is its wait.
  void serve() {
    if (!is_late) compute_really_us(round % 3 * 1500);
    while (is_late && !has_slept) {
    }
    gni_cq_entry_t event = 0;
    BENCH_REQUIRE(GNI_CqWaitEvent(asked, kNoLimit, &event));
    auto pd = w.put(0, 0, 8, GNI_CQMODE_REMOTE_EVENT);
    pd.local_mem_hndl = w.local_handle;
    BENCH_REQUIRE(GNI_PostFma(answers, &pd));
    answered = true;
  }
};

// A thread that serves, created by one of the calls.
class Helper {
 public:
  Helper(Server& server, int round) {
    server.round = round;
    server.answered = false;
    how_ = round % kWays;
    if (how_ == 0) std_ = std::thread([&server] { server.serve(); });
    if (how_ == 1) {
      const auto body = [](void* of) -> void* {
        static_cast<Server*>(of)->serve();
        pthread_exit(nullptr);
      };
      if (pthread_create(&posix_, nullptr, body, &server) != 0) std::abort();
    }
    if (how_ == 2) {
      const auto body = [](void* of) {
        static_cast<Server*>(of)->serve();
        return 7;
      };
      if (thrd_create(&c11_, body, &server) != thrd_success) std::abort();
    }
  }
  void join() {
    int result = 7;
    if (how_ == 0) std_.join();
    if (how_ == 1) pthread_join(posix_, nullptr);
    if (how_ == 2) thrd_join(c11_, &result);
    if (result != 7) std::abort();
  }

 private:
  int how_ = 0;
  std::thread std_;
  pthread_t posix_{};
  thrd_t c11_{};
};

}  // namespace

void newcomers(World& w, int how, bool late) {
  const int peer = 1 - w.rank();
  Server server{w, w.session.endpoint(peer, w.session.queue(64))};
  BENCH_REQUIRE(GNI_CqCreate(w.session.nic, 64, 0, GNI_CQ_BLOCKING, nullptr, nullptr, &server.asked));
  alignas(4096) static std::byte room[4096];
  const bench::Window mine{reinterpret_cast<std::uint64_t>(room),
                           w.session.registered(room, sizeof room, server.asked)};
  const auto windows = bench::all_gather(mine, w.rank(), w.size());
  server.is_late = late;
  for (int round = 0; round < (late ? 1 : kCreations); ++round) {
    PMI_Barrier();
    if (w.rank() == 1) {
      Helper helper(server, round);
      // The main thread waits for the launcher, looks, sleeps, or waits for that thread.
      while (how == 1 && !server.answered) (void)w.reap_one();
      while (how == 2 && !server.answered) {
        usleep(100);
        server.has_slept = true;
      }
      if (how != 3) PMI_Barrier();
      helper.join();
      if (how == 3) PMI_Barrier();
    } else {
      auto pd = bench::put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_REMOTE_EVENT, w.local,
                                      windows[static_cast<std::size_t>(peer)], 0, 8);
      const std::int64_t start = now_ns();
      w.post(peer, pd);
      (void)w.await_remote();
      std::printf("answer: %" PRId64 " ns\n", now_ns() - start);
      PMI_Barrier();
    }
  }
}

void background(World& w) {
  // One computes for seconds, one sleeps in a system call, one has ended.
  std::atomic<bool> over{false};
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::thread computes([&] {
    while (!over) compute_really_us(1000);
  });
  std::thread reads([&] {
    char byte = 0;
    if (read(ends[0], &byte, 1) != 1) std::abort();
  });
  std::thread([] {}).detach();
  for (int i = 0; i < 3; ++i) {
    PMI_Barrier();
    const std::int64_t start = now_ns();
    for (int put = 0; put < 1000; ++put) {
      auto pd = w.put(1 - w.rank(), 0, 8, GNI_CQMODE_GLOBAL_EVENT);
      w.post(1 - w.rank(), pd);
      w.reap();
    }
    std::printf("PE %d: puts: %" PRId64 " ns\n", w.rank(), now_ns() - start);
    usleep(1000);
  }
  over = true;
  if (write(ends[1], "", 1) != 1) std::abort();
  computes.join();
  reads.join();
}

}  // namespace clock_worker
