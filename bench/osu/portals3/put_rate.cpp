// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Portals 3.3 puts a second, in windows of 64 that the receiver ends with a message of its own; with
// --bandwidth, what they move.
#include "bench/osu/portals3/portals3_pair.hpp"
#include "bench/osu/timed_loop.hpp"

int main(int argc, char** argv) {
  constexpr int kWindow = 64;
  bool ack = false;
  bool copy = false;
  bool bandwidth = false;
  bench::OsuOptions options;
  options.iterations = 1000;
  options.largest = 1 << 20;
  options.extra_flags = {{"--ack", &ack, "ask for acknowledgements, and wait for them"},
                         {"--copy", &copy, "copy into memory that is bound once, instead of binding each"},
                         {"--bandwidth", &bandwidth, "print MB/s"}};
  options.parse("Portals 3.3 puts a second from one PE to another; run with: orrery run -n 2", argc, argv);
  bench::Portals3Pair pair(options, copy, ack);
  if (options.pinned) bench::pin(static_cast<int>(pair.rank));
  std::optional<bench::OsuTable> table;
  if (pair.first)
    table.emplace(options,
                  bandwidth ? "Orrery Portals 3.3 Put Bandwidth Test" : "Orrery Portals 3.3 Put Rate Test",
                  bandwidth ? "Bandwidth (MB/s)" : "Rate (M/s)");
  std::vector<ptl_handle_md_t> descriptors(kWindow);
  for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2) {
    PMI_Barrier();
    const double scale = bandwidth ? static_cast<double>(bytes) : 1;
    // Microseconds of a message.
    const auto times = bench::timed_loop(options, options.iterations_for(bytes), 1.0 / kWindow, [&] {
      if (!pair.first) {
        pair.receive(kWindow);
        const ptl_handle_md_t md = pair.begin(0);
        pair.reap(1);
        pair.end(md);
        return;
      }
      for (ptl_handle_md_t& md : descriptors) md = pair.begin(bytes);
      pair.receive(1);
      pair.reap(kWindow);
      for (const ptl_handle_md_t md : descriptors) pair.end(md);
    });
    if (!pair.first) continue;
    std::vector<double> samples;
    for (const double time : times) samples.push_back(scale / time);
    table->line(bytes, scale / bench::average_of(times), samples);
  }
  table.reset();
  return 0;
}
