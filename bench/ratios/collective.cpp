// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "bench/common/session.hpp"
#include "bench/ratios/stage.hpp"
#include "bench/ratios/tests.hpp"

#include <cstdio>
#include <cstring>
#include <vector>

#include <sched.h>

namespace bench {

namespace {

constexpr double kTestMs = 30;
constexpr int kRounds = 200;

// All PEs below one engine at PE 0.
class Reduction {
 public:
  explicit Reduction(Session& session, bool yields) : yields_(yields) {
    struct Card {
      std::uint32_t address;
      std::uint32_t engine;
    };
    gni_ce_handle_t engine = nullptr;
    Card mine{session.addresses[static_cast<std::size_t>(session.rank)], 0};
    if (session.rank == 0) {
      BENCH_REQUIRE(GNI_CeCreate(session.nic, &engine));
      BENCH_REQUIRE(GNI_CeGetId(engine, &mine.engine));
    }
    const auto cards = all_gather(mine, session.rank, session.size);
    const gni_cq_handle_t queue = session.queue(64);
    if (session.rank == 0) {
      std::vector<gni_ep_handle_t> children;
      for (int i = 0; i < session.size; ++i) {
        children.push_back(session.endpoint(i, queue));
        BENCH_REQUIRE(
            GNI_EpSetCeAttr(children.back(), UINT32_MAX, static_cast<std::uint32_t>(i), GNI_CE_CHILD_PE));
      }
      BENCH_REQUIRE(GNI_CeConfigure(engine, children.data(), static_cast<std::uint32_t>(session.size),
                                    nullptr, nullptr, GNI_CE_MODE_ROUND_NEAR));
    }
    up_ = session.endpoint(0, queue);
    BENCH_REQUIRE(
        GNI_EpSetCeAttr(up_, cards[0].engine, static_cast<std::uint32_t>(session.rank), GNI_CE_CHILD_PE));
    result_ = static_cast<gni_ce_result_t*>(std::aligned_alloc(4096, 4096));
    std::memset(result_, 0, 4096);
    std::memset(&post_, 0, sizeof post_);
    post_.type = GNI_POST_CE;
    post_.cq_mode = GNI_CQMODE_SILENT;
    post_.local_addr = reinterpret_cast<std::uint64_t>(result_);
    post_.local_mem_hndl = session.registered(result_, 4096);
    post_.ce_red_id = 1;
    PMI_Barrier();
  }

  void run(gni_ce_cmd_type_t command, std::uint64_t operand) {
    post_.ce_cmd = command;
    post_.first_operand = operand;
    require(GNI_PostFma(up_, &post_), "GNI_PostFma");
    gni_return_t rc = GNI_RC_SUCCESS;
    while ((rc = GNI_CeCheckResult(result_, 1)) == GNI_RC_NOT_DONE) {
      if (yields_) sched_yield();
    }
    require(rc, "GNI_CeCheckResult");
  }

 private:
  const bool yields_;
  gni_ep_handle_t up_ = nullptr;
  gni_ce_result_t* result_ = nullptr;
  gni_post_descriptor_t post_;
};

std::uint64_t bits_of(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

void measure_collective(int repetitions) {
  Session session;
  pin(session.rank);
  Stage stage(session.rank);
  Reduction reduction(session, false);
  const auto barrier = [&](int n) {
    for (int i = 0; i < n; ++i) reduction.run(GNI_FMA_CE_AND, 0);
  };
  const auto sum = [&](int n) {
    for (int i = 0; i < n; ++i) reduction.run(GNI_FMA_CE_FPADD, bits_of(1.5));
  };
  for (int i = 0; i < repetitions; ++i) {
    const double raw = stage.raw_half_round_trip(10);
    const double barriers = median(stage.run(64, kTestMs, 1, barrier, barrier));
    const double sums = median(stage.run(64, kTestMs, 1, sum, sum));
    if (session.rank != 0) continue;
    std::printf("ROW ce_barrier_2_pes %.3f %.3f\nROW ce_allreduce8_2_pes %.3f %.3f\n", barriers, raw, sums,
                raw);
    std::fflush(stdout);
  }
}

void measure_collective_8(int repetitions) {
  Session session;
  Stage stage(session.rank);
  Reduction reduction(session, true);
  const auto time = [&](auto step) {
    std::vector<double> samples;
    for (int i = 0; i < kRounds; ++i) {
      const std::uint64_t a = Stopwatch::ticks();
      for (int k = 0; k < 10; ++k) step();
      samples.push_back(stage.watch().ns(Stopwatch::ticks() - a) / 10);
    }
    return median(samples);
  };
  for (int i = 0; i < repetitions; ++i) {
    const double bare = time([&] { bare_barrier(stage.memory(), session.size); });
    PMI_Barrier();
    const double ours = time([&] { reduction.run(GNI_FMA_CE_FPADD, bits_of(1.5)); });
    PMI_Barrier();
    if (session.rank != 0) continue;
    std::printf("ROW ce_allreduce8_8_pes %.3f %.3f\n", ours, bare);
    std::fflush(stdout);
  }
}

}  // namespace bench
