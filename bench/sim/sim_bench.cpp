// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// How fast the packet simulator is. Rows:
//   bluegene-l 16^3 alltoall   240-byte packets, saturated; the figure that is asked for: 3 M packet-hops a
//   second bluegene-l 8^3 uniform 0.4 moderate load aries 8 groups shift       3,072 nodes, responses counted
//   gemini 8x8x8 uniform 0.4
// Each row by one thread and by --threads: packet-hops a second of wall time and of processor time (median of
// --repetitions), bytes of routers, workload and engine a node (docs/simulator.md, Speed). Results are the
// same for any number of threads; the program checks that and fails otherwise.
#include "bench/common/options.hpp"
#include "emu/sim/scene/simulate.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

namespace {

using namespace orrery;

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Case {
  const char* name;
  sim::RunSpec spec;
};

std::vector<Case> cases(double scale) {
  std::vector<Case> all(4);
  all[0].name = "bluegene-l 16^3 alltoall";
  all[0].spec.nodes = "16x16x16";
  all[0].spec.until_us = 150 * scale;
  all[1].name = "bluegene-l 8^3 uniform 0.4";
  all[1].spec.nodes = "8x8x8";
  all[1].spec.workload = "uniform";
  all[1].spec.load = 0.4;
  all[1].spec.warmup_us = 1e6;  // never called steady: a run of fixed length
  all[1].spec.until_us = 1500 * scale;
  all[2].name = "aries 8 groups shift";
  all[2].spec.machine = "aries";
  all[2].spec.nodes = "8";
  all[2].spec.order = "shift";
  all[2].spec.bytes = 512;
  all[2].spec.grain = 8;
  all[2].spec.repeat = 1000;
  all[2].spec.until_us = 10 * scale;
  all[3].name = "gemini 8x8x8 uniform 0.4";
  all[3].spec.machine = "gemini";
  all[3].spec.nodes = "8x8x8";
  all[3].spec.workload = "uniform";
  all[3].spec.bytes = 64;
  all[3].spec.load = 0.4;
  all[3].spec.warmup_us = 1e6;
  all[3].spec.until_us = 30 * scale;
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  int repetitions = 5;
  unsigned threads = 2;
  double scale = 1;
  std::string only;
  bench::Options options("Speed of the packet simulator");
  options.number("--repetitions", &repetitions, "Runs of each row", 1, 99);
  options.number("--threads", &threads, "Second column", 2, 64);
  options.number("--scale", &scale, "Simulated time, times this", 0.01, 100.0);
  options.text("--filter", &only, "Rows whose name has this in it");
  options.parse(argc, argv);
  std::printf("%-28s %8s %12s %12s %10s %9s\n", "row", "threads", "M hops/wall", "M hops/cpu", "bytes/node",
              "speed-up");
  for (const Case& c : cases(scale)) {
    if (std::string(c.name).find(only) == std::string::npos) continue;
    double alone = 0;
    std::uint64_t hops = 0, delivered = 0;
    for (const unsigned crew : {1u, threads}) {
      std::vector<double> wall, cpu;
      sim::SimResult result;
      for (int i = 0; i < repetitions; ++i) {
        sim::RunSpec spec = c.spec;
        spec.threads = crew;
        const double before = processor_seconds();
        if (const auto no = sim::simulate(spec, &result); no.refused()) {
          std::fprintf(stderr, "%s\n", no.why.c_str());
          return 2;
        }
        const auto done = static_cast<double>(result.outcome.total.link_hops);
        cpu.push_back(done / (processor_seconds() - before) / 1e6);
        wall.push_back(done / result.wall_seconds / 1e6);
        const auto& total = result.outcome.total;
        if (hops == 0) hops = total.link_hops, delivered = total.delivered;
        if (hops != total.link_hops || delivered != total.delivered || !result.outcome.conserved) {
          std::fprintf(stderr, "%s: %u threads came to another result\n", c.name, crew);
          return 1;
        }
      }
      std::sort(wall.begin(), wall.end());
      std::sort(cpu.begin(), cpu.end());
      const double median = wall[wall.size() / 2];
      if (crew == 1) alone = median;
      std::printf("%-28s %8u %12.2f %12.2f %10.0f %9.2f\n", c.name, crew, median, cpu[cpu.size() / 2],
                  static_cast<double>(result.state_bytes + result.outcome.engine_bytes) / result.nodes,
                  median / alone);
      std::fflush(stdout);
    }
  }
  return 0;
}
