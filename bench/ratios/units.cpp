// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "bench/common/session.hpp"
#include "bench/ratios/stage.hpp"
#include "bench/ratios/tests.hpp"

#include <cstdio>
#include <vector>

#include <orrery/fma.h>

namespace bench {

namespace {

constexpr std::size_t kPage = 4096;
constexpr int kBatches = 400;

void check(int rc, const char* call) { require(static_cast<gni_return_t>(rc), call); }

// A page of each PE, a window to all of them, and for rank 0 what it takes to post to the next PE.
struct Job {
  Session session;
  Stopwatch watch;
  CoreShare share;
  void* page;
  std::vector<Window> windows;
  gni_cq_handle_t queue;
  gni_ep_handle_t ep;
  alignas(64) std::uint64_t result[8] = {};
  gni_mem_handle_t result_handle;
  orrery_fma_window_t* window = nullptr;
  std::uint32_t pe_bits = 0;

  Job() {
    pin(session.rank);
    page = std::aligned_alloc(kPage, kPage);
    std::memset(page, 0, kPage);
    queue = session.queue(64);
    result_handle = session.registered(result, sizeof result);
    windows = all_gather(Window{reinterpret_cast<std::uint64_t>(page), session.registered(page, kPage)},
                         session.rank, session.size);
    ep = session.endpoint((session.rank + 1) % session.size, queue);
    std::vector<orrery_fma_place_t> places;
    for (int pe = 0; pe < session.size; ++pe) {
      const Window& at = windows[static_cast<std::size_t>(pe)];
      places.push_back({session.addresses[static_cast<std::size_t>(pe)],
                        0,
                        at.address,
                        {at.handle.qword1, at.handle.qword2}});
    }
    orrery_fma_descriptor_t d{};
    d.pe_shift = 6;
    while (1 << pe_bits < session.size) ++pe_bits;
    d.pe_bits = pe_bits;
    check(orrery_fma_open(session.nic, &d, places.data(), static_cast<std::uint32_t>(places.size()), &window),
          "orrery_fma_open");
    if (session.rank == 0) warm_up();
  }
  ~Job() {
    orrery_fma_close(window);
    if (session.rank == 0) report(share);
  }

  // Memory that is used often moves to where it can be mapped.
  void warm_up() {
    std::uint32_t name = 0;
    for (int round = 0; round < 40; ++round) {
      check(orrery_fma_begin(window), "orrery_fma_begin");
      for (int pe = 0; pe < session.size; ++pe)
        check(orrery_fma_launch(window, orrery_fma_word(static_cast<std::uint32_t>(pe), 0, 1)), "launch");
      check(orrery_fma_end(window, &name), "orrery_fma_end");
      int rc = 0;
      while ((rc = orrery_fma_test(window, name)) == ORRERY_FMA_NOT_DONE) {
      }
      check(rc, "orrery_fma_test");
      const timespec nap{0, 2'000'000};
      nanosleep(&nap, nullptr);
    }
  }

  template <typename Step>
  double time(int batch, Step step) {
    WholeCoreSamples samples(share);
    // Up to ten times as many when a stranger is on the core.
    for (int i = 0; i < kBatches || (!samples.enough() && i < 10 * kBatches); ++i) {
      const std::uint64_t a = Stopwatch::ticks();
      for (int k = 0; k < batch; ++k) step(k);
      const double ns = watch.ns(Stopwatch::ticks() - a) / batch;
      samples.add(ns, issue_probe());
    }
    return median(samples.take());
  }
  void end_transaction() {
    std::uint32_t name = 0;
    check(orrery_fma_end(window, &name), "orrery_fma_end");
    int rc = 0;
    while ((rc = orrery_fma_test(window, name)) == ORRERY_FMA_NOT_DONE) {
    }
    check(rc, "orrery_fma_test");
  }
};

void amos(Job& job) {
  const Window& next = job.windows[1];
  auto pd = put_descriptor(GNI_POST_AMO, GNI_CQMODE_LOCAL_EVENT, job.result, next, 512, 8);
  pd.local_mem_hndl = job.result_handle;
  pd.amo_cmd = GNI_FMA_ATOMIC_FADD;
  pd.first_operand = 1;
  for (int i = 0; i < 200; ++i) {
    GNI_PostFma(job.ep, &pd);
    reap(job.queue);
  }
  row(0, "amo_fetching_and_event",
      job.time(256,
               [&](int) {
                 GNI_PostFma(job.ep, &pd);
                 reap(job.queue);
               }),
      1);
  pd.amo_cmd = GNI_FMA_ATOMIC_ADD;
  pd.cq_mode = GNI_CQMODE_SILENT;
  row(0, "amo_silent", job.time(1024, [&](int) { GNI_PostFma(job.ep, &pd); }), 1);
}

void launches(Job& job) {
  check(orrery_fma_begin(job.window), "orrery_fma_begin");
  row(0, "fma_launch",
      job.time(1024,
               [&](int k) {
                 orrery_fma_launch(job.window, orrery_fma_word(1, static_cast<std::uint64_t>(k % 64) * 8,
                                                               static_cast<std::uint64_t>(k)));
               }),
      1);
  job.end_transaction();
}

void scatter(Job& job) {
  // As many pages of our own, for what the copies alone cost.
  std::vector<std::byte*> plain;
  for (int pe = 0; pe < job.session.size; ++pe) {
    plain.push_back(static_cast<std::byte*>(std::aligned_alloc(kPage, kPage)));
    std::memset(plain.back(), 0, kPage);
  }
  // Half a page away from where it goes in every page: a load that seems to follow a store to the same offset
  // of another page waits for it.
  alignas(kPage) static std::byte page_of_blocks[kPage];
  const std::byte* const block = page_of_blocks + kPage / 2;
  const std::size_t pes = plain.size();
  const double limit = job.time(128, [&](int) {
    for (std::size_t pe = 0; pe < pes; ++pe) std::memcpy(plain[pe], block + pe * 64, 64);
    asm volatile("" ::: "memory");
  });
  check(orrery_fma_begin(job.window), "orrery_fma_begin");
  const double ours = job.time(128, [&](int) { orrery_fma_store(job.window, 0, block, pes * 64); });
  job.end_transaction();
  row(0, "scatter_64_to_8_pes", ours, limit);
  for (std::byte* p : plain) std::free(p);
}

}  // namespace

void measure_units(int repetitions) {
  Job job;
  for (int i = 0; i < repetitions && job.session.rank == 0; ++i) {
    amos(job);
    launches(job);
  }
  PMI_Barrier();
}

void measure_scatter(int repetitions) {
  Job job;
  for (int i = 0; i < repetitions && job.session.rank == 0; ++i) scatter(job);
  PMI_Barrier();
}

}  // namespace bench
