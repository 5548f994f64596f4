// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "bench/common/clock.hpp"
#include "bench/common/core_share.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <sched.h>
#include <sys/mman.h>

// The stage that two or more pinned processes measure on: a piece of shared memory that owes nothing to the
// library under test, in which the raw limits are measured and the steps of a test are kept together.
namespace bench {

struct alignas(128) Line {
  std::atomic<std::uint64_t> value;
};

struct StageMemory {
  Line go, ack, stop, ping, pong;
  Line probe;                // what rank 1's issue_probe() said after its last batch
  Line counter, generation;  // the bare barrier
};

// The environment variable that carries the stage's descriptor to the measuring processes.
inline constexpr const char* kStageVariable = "RATIOS_STAGE_FD";

// Tells the parent how many samples of this process count.
inline void report(const CoreShare& share) {
  std::printf("SAMPLES %zu %zu\n", share.kept, share.taken);
  std::fflush(stdout);
}

class Stage {
 public:
  explicit Stage(int rank) : rank_(rank) {
    const char* fd = std::getenv(kStageVariable);
    if (fd == nullptr) std::abort();
    void* base = mmap(nullptr, sizeof(StageMemory), PROT_READ | PROT_WRITE, MAP_SHARED, std::atoi(fd), 0);
    if (base == MAP_FAILED) std::abort();
    memory_ = static_cast<StageMemory*>(base);
  }

  StageMemory& memory() { return *memory_; }
  const Stopwatch& watch() const { return watch_; }

  ~Stage() {
    if (rank_ == 0) report(share_);
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Runs `active(batch)` on rank 0 and `passive(batch)` on rank 1 again and again for `milliseconds`; rank 0
  // gets the nanoseconds of one step for each batch. Batches are short, so a preemption spoils one of them;
  // those beside which a stranger shared one of the two cores are left out (bench/common/core_share.hpp).
  template <typename Active, typename Passive>
  std::vector<double> run(int batch, double milliseconds, double steps_per_item, Active active,
                          Passive passive) {
    WholeCoreSamples samples(share_);
    StageMemory& m = *memory_;
    if (rank_ == 0) {
      double last = 0;
      std::uint64_t last_probe = 0;
      // Rank 1 has probed its core when it acknowledges what comes next.
      const auto keep_last = [&](int n) {
        if (n > 3) samples.add(last, std::max(last_probe, m.probe.value.load(std::memory_order_relaxed)));
      };
      // Up to ten times as long when strangers are on the cores.
      const double begin = now_ns();
      const auto go_on = [&] {
        const double passed = (now_ns() - begin) / 1e6;
        return passed < milliseconds || (!samples.enough() && passed < 10 * milliseconds);
      };
      int n = 0;
      for (; go_on(); ++n) {
        m.go.value.store(++turn_, std::memory_order_release);
        while (m.ack.value.load(std::memory_order_acquire) != turn_) _mm_pause();
        keep_last(n);
        const std::uint64_t a = Stopwatch::ticks();
        active(batch);
        last = watch_.ns(Stopwatch::ticks() - a) / (batch * steps_per_item);
        last_probe = issue_probe();
      }
      m.stop.value.store(++stops_, std::memory_order_release);
      while (m.ack.value.load(std::memory_order_acquire) != ~stops_) _mm_pause();
      keep_last(n);
    } else {
      ++stops_;
      for (;;) {
        const std::uint64_t go = m.go.value.load(std::memory_order_acquire);
        if (go != turn_) {
          turn_ = go;
          m.ack.value.store(go, std::memory_order_release);
          passive(batch);
          m.probe.value.store(issue_probe(), std::memory_order_relaxed);
        } else if (m.stop.value.load(std::memory_order_acquire) == stops_) {
          m.ack.value.store(~stops_, std::memory_order_release);
          break;
        } else {
          _mm_pause();
        }
      }
    }
    return samples.take();
  }

  // Half a round trip of one cache line between the two processes: what the memory itself costs.
  double raw_half_round_trip(double milliseconds) {
    StageMemory& m = *memory_;
    const auto ping = [&](int n) {
      for (int i = 0; i < n; ++i) {
        m.ping.value.store(++rounds_, std::memory_order_release);
        while (m.pong.value.load(std::memory_order_acquire) != rounds_) {
        }
      }
    };
    const auto pong = [&](int n) {
      for (int i = 0; i < n; ++i) {
        ++rounds_;
        while (m.ping.value.load(std::memory_order_acquire) != rounds_) {
        }
        m.pong.value.store(rounds_, std::memory_order_release);
      }
    };
    return median(run(64, milliseconds, 2, ping, pong));
  }

 private:
  const int rank_;
  Stopwatch watch_;
  StageMemory* memory_ = nullptr;
  std::uint64_t turn_ = 0;
  std::uint64_t stops_ = 0;
  std::uint64_t rounds_ = 0;
  CoreShare share_;
};

// Half a round trip over something that has send(n) and receive(n), in ns.
template <typename Way>
double half_round_trip(Stage& stage, Way& way, double milliseconds) {
  const auto ping = [&](int n) {
    for (int i = 0; i < n; ++i) {
      way.send(1);
      way.receive(1);
    }
  };
  const auto pong = [&](int n) {
    for (int i = 0; i < n; ++i) {
      way.receive(1);
      way.send(1);
    }
  };
  return median(stage.run(64, milliseconds, 2, ping, pong));
}

// A window of `many` that way, then one that answers: ns for each of the window.
template <typename Way>
double window(Stage& stage, Way& way, int many, double milliseconds) {
  const auto ping = [&](int n) {
    for (int i = 0; i < n; ++i) {
      way.send(many);
      way.receive(1);
    }
  };
  const auto pong = [&](int n) {
    for (int i = 0; i < n; ++i) {
      way.receive(many);
      way.send(1);
    }
  };
  return median(stage.run(8, milliseconds, many, ping, pong));
}

// What the cores and the scheduler cost: one counter, one generation, every process yields.
inline void bare_barrier(StageMemory& m, int size) {
  const std::uint64_t generation = m.generation.value.load(std::memory_order_acquire);
  if (m.counter.value.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint64_t>(size)) {
    m.counter.value.store(0, std::memory_order_relaxed);
    m.generation.value.store(generation + 1, std::memory_order_release);
    return;
  }
  while (m.generation.value.load(std::memory_order_acquire) == generation) sched_yield();
}

}  // namespace bench
