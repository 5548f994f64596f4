// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// CCI's messages a second from one PE to another, streaming: the receiver answers each half of a window with
// a message of its own, and the next half leaves while the one before is under way. With --bandwidth, what
// they move.
#include "bench/osu/cci/cci_pair.hpp"
#include "bench/osu/timed_loop.hpp"

int main(int argc, char** argv) {
  // Two halves are as many as a connection holds by shared memory until the receiver's program looks.
  constexpr int kHalf = 32;
  bool reliable = false;
  bool bandwidth = false;
  bench::OsuOptions options;
  options.iterations = 1000;
  options.largest = 4096;
  options.extra_flags = {{"--reliable", &reliable, "on a connection that is reliable and ordered"},
                         {"--bandwidth", &bandwidth, "print MB/s"}};
  options.parse("CCI messages a second from one PE to another; run with: orrery run -n 2", argc, argv);
  bench::CciPair pair(options, reliable);
  if (options.pinned) bench::pin(pair.rank);
  std::optional<bench::OsuTable> table;
  if (pair.first)
    table.emplace(options, bandwidth ? "Orrery CCI Bandwidth Test" : "Orrery CCI Message Rate Test",
                  bandwidth ? "Bandwidth (MB/s)" : "Rate (M/s)");
  for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2) {
    PMI_Barrier();
    const double scale = bandwidth ? static_cast<double>(bytes) : 1;
    const auto send_half = [&] {
      for (int i = 0; i < kHalf; ++i) pair.send(bytes);
    };
    if (pair.first) send_half();
    // Microseconds of a message.
    const auto times = bench::timed_loop(options, options.iterations_for(bytes), 1.0 / kHalf, [&] {
      if (pair.first) {
        send_half();
        pair.receive(1);
      } else {
        pair.receive(kHalf);
        pair.send(0);
      }
    });
    // The half that is still under way.
    if (pair.first) {
      pair.receive(1);
    } else {
      pair.receive(kHalf);
      pair.send(0);
      continue;
    }
    std::vector<double> samples;
    for (const double time : times) samples.push_back(scale / time);
    table->line(bytes, scale / bench::average_of(times), samples);
  }
  table.reset();
  return 0;
}
