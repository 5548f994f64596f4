// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The per-operation model beside the packet simulator: mean latency and throughput by load, for each machine
// and pattern. A load of 1 is the peak of uniform traffic. `ns/quote` is
// processor time of one quote under that load, traffic generation included; `inexact`: how many of a hundred
// quotes had to join two promises of a link.
//
//   bench_tiers [machine] [--loads 0.1,0.3,...] [--scale x]
#include "emu/sim/tile/tiers.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

namespace {

using namespace orrery;

double processor_ns() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  std::string only;
  std::vector<double> loads{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
  double scale = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) {
      std::printf(
          "usage: bench_tiers [--loads L,L,... (default 0.1 to 0.9)] [--scale F (default 1)] [MACHINE]\n");
      return 0;
    }
    if (std::strcmp(argv[i], "--loads") == 0 && i + 1 < argc) {
      loads.clear();
      for (char* at = argv[++i]; *at != '\0'; at += *at == ',') loads.push_back(std::strtod(at, &at));
    } else if (std::strcmp(argv[i], "--scale") == 0 && i + 1 < argc) {
      scale = std::strtod(argv[++i], nullptr);
    } else {
      only = argv[i];
    }
  }
  std::printf("%-11s %-10s %5s %21s %8s %19s %8s %8s %9s\n", "machine", "traffic", "load",
              "latency i, ii (ns)", "apart", "GB/s a node i, ii", "apart", "inexact", "ns/quote");
  for (sim::TierCase tier : sim::tier_cases()) {
    if (!only.empty() && only != tier.machine) continue;
    tier.window_us *= scale;
    const auto machine = sim::network_alone(tier);
    if (machine == nullptr) continue;
    for (const sim::Pattern pattern : {sim::Pattern::uniform, sim::Pattern::hot_region}) {
      for (const double load : loads) {
        sim::TierTraffic traffic;
        traffic.pattern = pattern;
        traffic.packets_per_node_ns = load * sim::uniform_peak(*machine);
        const double before = processor_ns();
        const sim::TierOutcome i = sim::by_operations(*machine, tier, traffic);
        const double took = processor_ns() - before;
        const sim::TierOutcome ii = sim::by_packets(*machine, tier, traffic);
        if (ii.work == 0) continue;
        std::printf("%-11s %-10s %5.2f %10.0f %10.0f %+7.1f%% %9.4f %9.4f %+7.1f%% %7.1f%% %9.0f\n",
                    tier.machine, sim::pattern_name(pattern), load, i.latency_ns, ii.latency_ns,
                    100 * (i.latency_ns / ii.latency_ns - 1), i.accepted, ii.accepted,
                    100 * (i.accepted / ii.accepted - 1),
                    100.0 * static_cast<double>(i.inexact) / static_cast<double>(i.work),
                    took / static_cast<double>(i.work));
        std::fflush(stdout);
      }
    }
  }
  return 0;
}
