// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A barrier of all PEs: by puts of 8 B (dissemination), by the collective engine (--ce), or the launcher's
// (--pmi). Its line's size is the number of PEs.
#include "bench/common/clock.hpp"
#include "bench/common/reduction.hpp"
#include "bench/osu/collective.hpp"

#include <memory>

namespace {

// In each round every PE tells the one `step` further on, and waits to be told. The rounds have words of
// their own; what is told is the barrier's number.
class Dissemination {
 public:
  explicit Dissemination(bench::Session& session) : session_(session), queue_(session.queue(1024)) {
    window_ = static_cast<std::byte*>(std::aligned_alloc(4096, 4096));
    local_ = static_cast<std::byte*>(std::aligned_alloc(4096, 4096));
    std::memset(window_, 0, 4096);
    std::memset(local_, 0, 4096);
    (void)session.registered(local_, 4096);
    const bench::Window mine{reinterpret_cast<std::uint64_t>(window_), session.registered(window_, 4096)};
    windows_ = bench::all_gather(mine, session.rank, session.size);
    for (int step = 1; step < session.size; step *= 2)
      eps_.push_back(session.endpoint((session.rank + step) % session.size, queue_));
    PMI_Barrier();
  }

  void run() {
    ++number_;
    std::memcpy(local_, &number_, sizeof number_);
    std::size_t round = 0;
    for (int step = 1; step < session_.size; step *= 2, ++round) {
      const auto to = static_cast<std::size_t>((session_.rank + step) % session_.size);
      gni_post_descriptor_t pd = bench::put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_SILENT, local_,
                                                       windows_[to], round * 64, sizeof number_);
      BENCH_REQUIRE(GNI_PostFma(eps_[round], &pd));
      const auto* told = reinterpret_cast<volatile std::uint64_t*>(window_ + round * 64);
      for (int spins = 0; *told < number_; ++spins) {
        gni_cq_entry_t event = 0;
        if (spins % 64 == 63) GNI_CqGetEvent(queue_, &event);
        if (spins > 1000) sched_yield();
      }
    }
  }

 private:
  bench::Session& session_;
  gni_cq_handle_t queue_ = nullptr;
  std::byte* window_ = nullptr;
  std::byte* local_ = nullptr;
  std::vector<bench::Window> windows_;
  std::vector<gni_ep_handle_t> eps_;
  std::uint64_t number_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  bool engine = false, launcher = false;
  bench::OsuOptions options;
  options.iterations = 1000;
  options.has_sizes = false;
  options.extra_flags = {{"--ce", &engine, "by the collective engine, at most 256 PEs"},
                         {"--pmi", &launcher, "the launcher's: PMI_Barrier"}};
  options.parse("a barrier of all PEs; run with: orrery run -n N", argc, argv);
  if (engine && launcher) {
    std::fprintf(stderr, "--ce and --pmi: expected one of them\n");
    return 2;
  }
  bench::Session session;
  if (options.pinned) bench::pin(session.rank);
  using orrery::model::Collective;
  const auto pes = static_cast<std::size_t>(session.size);
  if (engine) {
    bench::Reduction reduction(session);
    bench::time_collective(
        session, options, "Orrery uGNI Collective Engine Barrier Test", pes,
        [&] { (void)reduction.run(GNI_FMA_CE_AND, 0); },
        [&](const bench::Model& m) { return m.collective_us(Collective::allreduce, session.size, 16); });
  } else if (launcher) {
    bench::time_collective(
        session, options, "Orrery PMI Barrier Test", pes, [] { PMI_Barrier(); },
        [&](const bench::Model& m) {
          return m.collective_us(Collective::hardware_barrier, session.size, 0);
        });
  } else {
    Dissemination barrier(session);
    bench::time_collective(
        session, options, "Orrery uGNI Put Barrier Test", pes, [&] { barrier.run(); },
        [&](const bench::Model& m) { return m.dissemination_us(session.size); });
  }
  return 0;
}
