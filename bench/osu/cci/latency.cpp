// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Half a round trip of CCI's messages.
#include "bench/osu/cci/cci_pair.hpp"
#include "bench/osu/timed_loop.hpp"

int main(int argc, char** argv) {
  bool reliable = false;
  bench::OsuOptions options;
  options.largest = 4096;
  options.extra_flags = {{"--reliable", &reliable, "on a connection that is reliable and ordered"}};
  options.parse("CCI message ping-pong between two PEs; run with: orrery run -n 2", argc, argv);
  bench::CciPair pair(options, reliable);
  if (options.pinned) bench::pin(pair.rank);
  std::optional<bench::OsuTable> table;
  if (pair.first) table.emplace(options, "Orrery CCI Latency Test", "Latency (us)");
  for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2) {
    PMI_Barrier();
    const auto samples = bench::timed_loop(options, options.iterations_for(bytes), 0.5, [&] {
      if (!pair.first) pair.receive(1);
      pair.send(bytes);
      if (pair.first) pair.receive(1);
    });
    if (!pair.first) continue;
    std::optional<double> expected;
    using orrery::model::Op;
    if (pair.model) expected = pair.model->data_us(reliable ? Op::send_reliable : Op::send, {0, 1}, bytes);
    table->line(bytes, bench::average_of(samples), samples, expected);
  }
  table.reset();
  return 0;
}
