// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The per-operation model against the packet simulator, uniform traffic.
#include "emu/sim/tile/tiers.hpp"
#include "tools/orrery/figures/figures_book.hpp"

#include <cmath>

namespace orrery::tool {

void tiers(Book& book) {
  for (const sim::TierCase& t : sim::tier_cases()) {
    const auto machine = sim::network_alone(t);
    if (machine == nullptr) continue;
    const double full = sim::uniform_peak(*machine);
    Curves curves{fmt::format("tiers-{}", t.machine),
                  fmt::format("{}: per-operation model and packet simulator, uniform traffic", t.machine),
                  "load, share of the peak", "mean latency, ns"};
    curves.lines = {{"per-operation model", {}}, {"packet simulator", {}}};
    double worst_latency = 0, worst_accepted = 0, at_latency = 0, at_accepted = 0;
    for (int tenth = 1; tenth <= 9; tenth += book.options().brief ? 2 : 1) {
      const double load = tenth / 10.0;
      const sim::TierTraffic traffic{sim::Pattern::uniform, load * full, book.options().seed,
                                     book.options().threads};
      const sim::TierOutcome i = sim::by_operations(*machine, t, traffic),
                             ii = sim::by_packets(*machine, t, traffic);
      book.spent(ii.work);
      curves.lines[0].points.push_back({load, i.latency_ns});
      curves.lines[1].points.push_back({load, ii.latency_ns});
      const double latency = 100 * (i.latency_ns / ii.latency_ns - 1),
                   accepted = 100 * (i.accepted / ii.accepted - 1);
      if (book.options().detail)
        fmt::print("     {} load {:.1f}: {:.0f} and {:.0f} ns, {:.3f} and {:.3f} GB/s a node\n", t.machine,
                   load, i.latency_ns, ii.latency_ns, i.accepted, ii.accepted);
      if (tenth < 7 && std::fabs(latency) > std::fabs(worst_latency))
        worst_latency = latency, at_latency = load;
      if (std::fabs(accepted) > std::fabs(worst_accepted)) worst_accepted = accepted, at_accepted = load;
    }
    book.curves(curves);
    book.row({fmt::format("tiers, {}: mean latency below 70 % load, worst", t.machine), "packet simulator",
              fmt::format("{:+.1f} % at {:.1f}", worst_latency, at_latency), "15 %", "predicted",
              std::fabs(worst_latency) <= 15});
    book.row({fmt::format("tiers, {}: throughput at 10 to 90 % load, worst", t.machine), "packet simulator",
              fmt::format("{:+.1f} % at {:.1f}", worst_accepted, at_accepted), "10 %", "predicted",
              std::fabs(worst_accepted) <= 10});
  }
}

}  // namespace orrery::tool
