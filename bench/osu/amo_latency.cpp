// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Time of an addition at the peer, from the post to its event: with its result or without, of a word that the
// peer's NIC keeps in its cache or of one in memory. The peer does nothing.
#include "bench/osu/model.hpp"
#include "bench/osu/pair.hpp"
#include "bench/osu/table.hpp"
#include "bench/osu/timed_loop.hpp"

int main(int argc, char** argv) {
  bool cached = false, silent = false;
  bench::OsuOptions options;
  options.has_sizes = false;
  options.extra_flags = {{"--cached", &cached, "the command that the NIC's cache serves"},
                         {"--add", &silent, "without the result"}};
  options.parse("atomic additions at a passive PE; run with: orrery run -n 2", argc, argv);
  bench::OsuPair pair(4096, false, cached ? GNI_CDM_MODE_CACHED_AMO_ENABLED : 0);
  if (options.pinned) bench::pin(pair.session.rank);
  std::optional<bench::Model> model;
  if (options.model) model.emplace(pair.session);
  if (pair.session.rank == 0) {
    bench::OsuTable table(options, "Orrery uGNI AMO Latency Test", "Latency (us)");
    auto pd = bench::put_descriptor(GNI_POST_AMO, GNI_CQMODE_GLOBAL_EVENT, pair.local, pair.peer, 0, 8);
    pd.local_mem_hndl = pair.local_handle;
    pd.amo_cmd = silent ? (cached ? GNI_FMA_ATOMIC_ADD_C : GNI_FMA_ATOMIC_ADD)
                        : (cached ? GNI_FMA_ATOMIC_FADD_C : GNI_FMA_ATOMIC_FADD);
    pd.first_operand = 1;
    const auto samples = bench::timed_loop(options, options.iterations, 1, [&] {
      pair.post(pd);
      pair.reap();
    });
    std::optional<double> expected;
    using orrery::model::Op;
    if (model) {
      // The first one brings the word into the cache; those that count find it there.
      const Op op =
          silent ? (cached ? Op::amo : Op::amo_miss) : (cached ? Op::fetch_amo : Op::fetch_amo_miss);
      expected = model->local_event_us(op, {0, 1}, 8);
    }
    table.line(8, bench::average_of(samples), samples, expected);
  }
  PMI_Barrier();
  return 0;
}
