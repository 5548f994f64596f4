// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Half a round trip of Portals 3.3 puts. With --ack each one's acknowledgement is waited for before the
// answer is.
#include "bench/osu/portals3/portals3_pair.hpp"
#include "bench/osu/timed_loop.hpp"

int main(int argc, char** argv) {
  bool ack = false;
  bool copy = false;
  bench::OsuOptions options;
  options.largest = 65536;
  options.extra_flags = {{"--ack", &ack, "ask for acknowledgements, and wait for them"},
                         {"--copy", &copy, "copy into memory that is bound once, instead of binding each"}};
  options.parse("Portals 3.3 put ping-pong between two PEs; run with: orrery run -n 2", argc, argv);
  bench::Portals3Pair pair(options, copy, ack);
  if (options.pinned) bench::pin(static_cast<int>(pair.rank));
  std::optional<bench::OsuTable> table;
  if (pair.first) table.emplace(options, "Orrery Portals 3.3 Put Latency Test", "Latency (us)");
  for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2) {
    PMI_Barrier();
    const auto samples = bench::timed_loop(options, options.iterations_for(bytes), 0.5, [&] {
      if (!pair.first) pair.receive(1);
      const ptl_handle_md_t md = pair.begin(bytes);
      if (ack) pair.reap(1);
      if (pair.first) pair.receive(1);
      if (!ack) pair.reap(1);
      pair.end(md);
    });
    if (!pair.first) continue;
    std::optional<double> expected;
    if (pair.model) {
      using orrery::model::Op;
      // The answer starts when the message is told, or, with --ack, when that has come back too.
      expected = ack ? pair.model->local_event_us(Op::matched_put_ack, {0, 1}, bytes)
                     : pair.model->remote_event_us(Op::matched_put, {0, 1}, bytes);
    }
    table->line(bytes, bench::average_of(samples), samples, expected);
  }
  table.reset();
  return 0;
}
