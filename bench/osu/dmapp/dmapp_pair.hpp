// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "bench/common/clock.hpp"
#include "bench/common/dmapp_calls.hpp"
#include "bench/common/session.hpp"
#include "bench/osu/model.hpp"
#include "bench/osu/table.hpp"

#include <optional>

namespace bench {

// A PE of an OSU-style program over DMAPP: PE n works on the memory of PE n + half of the job. The symmetric
// window is that of every PE; the local buffer is ordinary memory.
struct DmappPair {
  dmapp_jobinfo_t job{};
  dmapp_seg_desc_t* heap = &job.sheap_seg;
  int half = 0;
  int partner = 0;
  bool sender = false;
  bool first = false;
  std::byte* window = nullptr;
  std::byte* local = nullptr;
  std::optional<Model> model;

  DmappPair(const OsuOptions& options, std::size_t bytes, bool pairs) {
    dmapp_rma_attrs_t actual{};
    BENCH_DMAPP(dmapp_init(nullptr, &actual));
    BENCH_DMAPP(dmapp_get_jobinfo(&job));
    if (pairs ? job.npes % 2 != 0 : job.npes != 2) {
      if (job.pe == 0)
        std::fprintf(stderr, "this program needs %s PEs, not %d: orrery run -n 2\n",
                     pairs ? "an even number of" : "2", job.npes);
      std::exit(2);
    }
    half = job.npes / 2;
    sender = job.pe < half;
    first = job.pe == 0;
    partner = sender ? job.pe + half : job.pe - half;
    const std::size_t room = (bytes + 8191) / 4096 * 4096;
    window = static_cast<std::byte*>(dmapp_sheap_malloc(room));
    local = static_cast<std::byte*>(std::aligned_alloc(4096, room));
    if (window == nullptr || local == nullptr) {
      std::fprintf(stderr, "no memory for %zu bytes: set XT_SYMMETRIC_HEAP_SIZE\n", room);
      PMI_Abort(1, "no memory");
    }
    std::memset(window, 0, room);
    std::memset(local, 0, room);
    if (options.pinned) pin(job.pe);
    if (options.model) model.emplace(job.pe, job.npes);
    PMI_Barrier();
  }
  ~DmappPair() {
    PMI_Barrier();
    (void)dmapp_finalize();
  }
  DmappPair(const DmappPair&) = delete;
  DmappPair& operator=(const DmappPair&) = delete;

  // Every pair's flow, for the model.
  std::vector<Model::Flow> flows() const {
    std::vector<Model::Flow> all;
    for (int i = 0; i < half; ++i) all.emplace_back(i, i + half);
    return all;
  }
};

// Operations a second, in windows of `window` that one gsync ends: `one` starts one. Per sender, in millions.
// Samples are of all pairs.
template <typename One>
double rate_of(DmappPair& pair, const OsuOptions& options, int iterations, int window,
               std::vector<double>* samples, One one) {
  const Stopwatch watch;
  double ns = 0;
  PMI_Barrier();
  if (pair.sender) {
    for (int i = -options.warm_up / 10; i < iterations; ++i) {
      const std::uint64_t start = Stopwatch::ticks();
      for (int k = 0; k < window; ++k) one();
      BENCH_DMAPP(dmapp_gsync_wait());
      if (i < 0) continue;
      const double took = watch.ns(Stopwatch::ticks() - start);
      ns += took;
      samples->push_back(window / took * 1000 * pair.half);
    }
  }
  const double mine = pair.sender ? static_cast<double>(window) * iterations / ns * 1000 : 0;
  double rate = 0;
  for (const double each : all_gather(mine, pair.job.pe, pair.job.npes)) rate += each;
  return rate;
}

}  // namespace bench
