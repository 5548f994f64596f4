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

// Each PE puts its count into its word at every other PE and waits until it has the count of each. No PE has
// to run for the others to go on: the last one to arrive releases all of them, as in the bare barrier.
// Waiting yields: there are more PEs than cores, and each should run once a phase.
class PutBarrier {
 public:
  explicit PutBarrier(Session& session) : session_(session) {
    words_ = static_cast<std::uint64_t*>(std::aligned_alloc(4096, 4096));
    std::memset(words_, 0, 4096);
    queue_ = session.queue(64);
    const auto windows =
        all_gather(Window{reinterpret_cast<std::uint64_t>(words_), session.registered(words_, 4096)},
                   session.rank, session.size);
    // A line of its own for each that writes.
    for (int to = 0; to < session.size; ++to) {
      if (to == session.rank) continue;
      puts_.push_back(
          {session.endpoint(to, queue_),
           put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_SILENT, &count_, windows[static_cast<std::size_t>(to)],
                          static_cast<std::size_t>(session.rank) * kLine, sizeof count_)});
    }
    PMI_Barrier();
  }

  void wait() {
    ++count_;
    for (Put& put : puts_) {
      while (GNI_PostFma(put.ep, &put.descriptor) == GNI_RC_ERROR_RESOURCE) sched_yield();
    }
    for (int from = 0; from < session_.size; ++from) {
      if (from == session_.rank) continue;
      const auto* at = reinterpret_cast<volatile std::uint64_t*>(words_ + static_cast<std::size_t>(from) *
                                                                              (kLine / sizeof count_));
      while (*at < count_) sched_yield();
    }
  }

 private:
  struct Put {
    gni_ep_handle_t ep;
    gni_post_descriptor_t descriptor;
  };
  static constexpr std::size_t kLine = 64;
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
    row(session.rank, "barrier_by_puts_8_pes", ours, bare);
  }
}

}  // namespace bench
