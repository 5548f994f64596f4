// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Time of a get, from the post to its event: the peer does nothing.
#include "bench/osu/model.hpp"
#include "bench/osu/pair.hpp"
#include "bench/osu/table.hpp"
#include "bench/osu/timed_loop.hpp"

int main(int argc, char** argv) {
  bench::OsuOptions options;
  // Addresses and lengths of gets are multiples of four bytes.
  options.parse("gets from a passive PE; run with: orrery run -n 2", argc, argv, 4, 4);
  bench::OsuPair pair(options.largest);
  if (options.pinned) bench::pin(pair.session.rank);
  std::optional<bench::Model> model;
  if (options.model) model.emplace(pair.session);
  if (pair.session.rank == 0) {
    bench::OsuTable table(options, "Orrery uGNI Get Latency Test", "Latency (us)");
    for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2) {
      auto pd =
          bench::put_descriptor(GNI_POST_FMA_GET, GNI_CQMODE_GLOBAL_EVENT, pair.local, pair.peer, 0, bytes);
      pd.local_mem_hndl = pair.local_handle;
      const auto samples = bench::timed_loop(options, options.iterations_for(bytes), 1, [&] {
        pair.post(pd);
        pair.reap();
      });
      std::optional<double> expected;
      if (model) expected = model->local_event_us(orrery::model::Op::fma_get, {0, 1}, bytes);
      table.line(bytes, bench::average_of(samples), samples, expected);
    }
  }
  PMI_Barrier();
  return 0;
}
