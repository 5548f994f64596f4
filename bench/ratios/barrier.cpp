// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "bench/common/session.hpp"
#include "bench/ratios/stage.hpp"
#include "bench/ratios/tests.hpp"

#include <array>
#include <cstdio>

#include <sched.h>

namespace bench {

namespace {

constexpr int kRounds = 300;

// A dissemination barrier: in round k each PE puts its count into the word of the PE 2^k further on, and
// waits for the word that the PE 2^k behind it puts. Waiting yields: there are more PEs than cores.
class PutBarrier {
 public:
  explicit PutBarrier(Session& session) : session_(session) {
    words_ = static_cast<std::uint64_t*>(std::aligned_alloc(4096, 4096));
    std::memset(words_, 0, 4096);
    queue_ = session.queue(64);
    const auto windows =
        all_gather(Window{reinterpret_cast<std::uint64_t>(words_), session.registered(words_, 4096)},
                   session.rank, session.size);
    for (int distance = 1; distance < session.size; distance *= 2) {
      const int to = (session.rank + distance) % session.size;
      Step step;
      step.ep = session.endpoint(to, queue_);
      step.descriptor = put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_SILENT, &count_,
                                       windows[static_cast<std::size_t>(to)], steps_ * 64, 8);
      steps_list_[steps_++] = step;
    }
    PMI_Barrier();
  }

  void wait() {
    ++count_;
    for (std::size_t k = 0; k < steps_; ++k) {
      Step& step = steps_list_[k];
      while (GNI_PostFma(step.ep, &step.descriptor) == GNI_RC_ERROR_RESOURCE) sched_yield();
      auto* word = reinterpret_cast<volatile std::uint64_t*>(words_ + k * 8);
      while (*word < count_) sched_yield();
    }
  }

 private:
  struct Step {
    gni_ep_handle_t ep = nullptr;
    gni_post_descriptor_t descriptor{};
  };
  Session& session_;
  std::uint64_t* words_ = nullptr;
  gni_cq_handle_t queue_ = nullptr;
  alignas(8) std::uint64_t count_ = 0;
  std::array<Step, 16> steps_list_{};
  std::size_t steps_ = 0;
};

// What the cores and the scheduler cost: one counter, one generation, everybody yields.
void bare_barrier(StageMemory& m, int size) {
  const std::uint64_t generation = m.generation.value.load(std::memory_order_acquire);
  if (m.counter.value.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint64_t>(size)) {
    m.counter.value.store(0, std::memory_order_relaxed);
    m.generation.value.store(generation + 1, std::memory_order_release);
    return;
  }
  while (m.generation.value.load(std::memory_order_acquire) == generation) sched_yield();
}

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
