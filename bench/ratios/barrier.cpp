// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "bench/common/session.hpp"
#include "bench/ratios/stage.hpp"
#include "bench/ratios/tests.hpp"

#include <cstdio>
#include <vector>

#include <sched.h>

namespace bench {

namespace {

constexpr int kRounds = 300;

// A central barrier: each PE puts its count into its word at PE 0, and PE 0, when it has them all, puts the
// count into everybody's word. Waiting yields: there are more PEs than cores, and each should run once a
// phase.
class PutBarrier {
 public:
  explicit PutBarrier(Session& session) : session_(session) {
    words_ = static_cast<std::uint64_t*>(std::aligned_alloc(4096, 4096));
    std::memset(words_, 0, 4096);
    queue_ = session.queue(64);
    const auto windows =
        all_gather(Window{reinterpret_cast<std::uint64_t>(words_), session.registered(words_, 4096)},
                   session.rank, session.size);
    const auto add = [&](int to, std::size_t word) {
      puts_.push_back({session.endpoint(to, queue_),
                       put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_SILENT, &count_,
                                      windows[static_cast<std::size_t>(to)], word * 64, 8)});
    };
    if (session.rank == 0) {
      for (int to = 1; to < session.size; ++to) add(to, 0);
    } else {
      add(0, static_cast<std::size_t>(session.rank));
    }
    PMI_Barrier();
  }

  void wait() {
    ++count_;
    if (session_.rank != 0) put_all();
    for (int word = session_.rank == 0 ? 1 : 0; word < (session_.rank == 0 ? session_.size : 1); ++word) {
      auto* at = reinterpret_cast<volatile std::uint64_t*>(words_ + word * 8);
      while (*at < count_) sched_yield();
    }
    if (session_.rank == 0) put_all();
  }

 private:
  struct Put {
    gni_ep_handle_t ep;
    gni_post_descriptor_t descriptor;
  };
  void put_all() {
    for (Put& put : puts_) {
      while (GNI_PostFma(put.ep, &put.descriptor) == GNI_RC_ERROR_RESOURCE) sched_yield();
    }
  }
  Session& session_;
  std::uint64_t* words_ = nullptr;
  gni_cq_handle_t queue_ = nullptr;
  alignas(8) std::uint64_t count_ = 0;
  std::vector<Put> puts_;
};

template <typename Barrier>
double time_barrier(const Stopwatch& watch, Barrier barrier) {
  std::vector<double> samples;
  for (int i = 0; i < kRounds; ++i) {
    const std::uint64_t a = Stopwatch::ticks();
    for (int k = 0; k < 10; ++k) barrier();
    samples.push_back(watch.ns(Stopwatch::ticks() - a) / 10);
  }
  return median(samples);
}

}  // namespace

void measure_barrier(int repetitions) {
  Session session;
  Stage stage(session.rank);
  PutBarrier barrier(session);
  for (int i = 0; i < 200; ++i) barrier.wait();  // until the words are where peers can reach them
  const timespec nap{0, 20'000'000};
  nanosleep(&nap, nullptr);
  for (int i = 0; i < repetitions; ++i) {
    const double bare = time_barrier(stage.watch(), [&] { bare_barrier(stage.memory(), session.size); });
    PMI_Barrier();
    const double ours = time_barrier(stage.watch(), [&] { barrier.wait(); });
    PMI_Barrier();
    if (session.rank == 0) {
      std::printf("ROW barrier_by_puts_8_pes %.3f %.3f\n", ours, bare);
      std::fflush(stdout);
    }
  }
}

}  // namespace bench
