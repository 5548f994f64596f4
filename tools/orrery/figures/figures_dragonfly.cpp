// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Figures of the Cascade paper (Aries) and of the ASCI Q paper (Quadrics).
#include "emu/sim/quadrics/quadrics.hpp"
#include "tools/orrery/figures/figures_book.hpp"

#include <algorithm>

namespace orrery::tool {

// How far a node of the all-to-alls runs ahead of what has arrived at it: as much as its NIC may have
// outstanding, 1,024 packets of 64 bytes. An assumption, the same in every figure (docs/simulator.md).
static constexpr std::uint64_t kAhead = 64 * 1024;

static sim::SimResult aries(Book& book, const char* routing, std::uint64_t bytes, double us,
                            std::uint64_t seed, const char* groups = "8") {
  sim::RunSpec spec;
  spec.machine = "aries";
  spec.nodes = groups;
  spec.routing = routing;
  spec.bytes = bytes;
  spec.order = "shift";
  spec.ahead = kAhead;
  spec.grain = 8;
  spec.repeat = 1u << 20;
  spec.seed = seed;
  spec.warmup_us = us / 4;
  spec.until_us = us;
  spec.sample_us = us / 8;
  return book.run(spec);
}

void aries_routing(Book& book) {
  // Up to 64 KiB, the longest messages of Figure 13: how long those of Figure 9 are the text does not say.
  const std::vector<std::uint64_t> sizes = book.options().brief
                                               ? std::vector<std::uint64_t>{512, 65536}
                                               : std::vector<std::uint64_t>{512, 4096, 32768, 65536};
  const int seeds = book.options().brief ? 1 : 5;
  // A shift of long messages takes 8 or 16 us, and how well it goes by minimal routes is chance: how much of
  // a group goes by one bundle. The benchmark makes all 3,071; this is long enough to measure 16 or 8 of
  // them.
  const double long_us = book.options().brief ? 60 : 180;
  Curves curves{"aries-figure-9", "Aries Figures 9 and 10: all-to-all on 3,072 nodes", "message, bytes",
                "GB/s per node"};
  curves.log_x = true;
  const char* modes[] = {"minimal", "valiant", "adaptive0", "adaptive"};
  const char* labels[] = {"minimal", "non-minimal (Valiant)", "adaptive, no bias", "adaptive, tuned"};
  std::vector<std::vector<double>> mean(4), spread(4);
  for (std::size_t m = 0; m < 4; ++m) {
    Curves::Line line{labels[m], {}};
    for (const std::uint64_t size : sizes) {
      double low = 1e9, high = 0, sum = 0;
      for (int seed = 1; seed <= seeds; ++seed) {
        const double rate =
            aries(book, modes[m], size, size >= 32768 ? long_us : 12, static_cast<std::uint64_t>(seed) + 100)
                .payload_gb_per_node();
        low = std::min(low, rate);
        high = std::max(high, rate);
        sum += rate;
      }
      mean[m].push_back(sum / seeds);
      spread[m].push_back(high - low);
      line.points.push_back({static_cast<double>(size), sum / seeds});
    }
    curves.lines.push_back(line);
  }
  book.curves(curves);
  const std::size_t last = sizes.size() - 1;
  const auto apart = [&](std::size_t a, std::size_t b, std::size_t at) {
    return mean[a][at] - mean[b][at] > std::max(spread[a][at], spread[b][at]);
  };
  book.order("Figure 9: small messages, minimal beats Valiant", "minimal best",
             fmt::format("{:.2f} > {:.2f} GB/s", mean[0][0], mean[1][0]), apart(0, 1, 0));
  book.order("Figure 9: large messages, minimal is worst", "minimal worst",
             fmt::format("{:.2f} < {:.2f}, {:.2f}, {:.2f} GB/s", mean[0][last], mean[1][last], mean[2][last],
                         mean[3][last]),
             apart(1, 0, last) && apart(2, 0, last) && apart(3, 0, last));
  book.order("Figure 9: minimal falls with size, Valiant stays", "falls, flat",
             fmt::format("{:.0f} %, {:.0f} % left", 100 * mean[0][last] / mean[0][0],
                         100 * mean[1][last] / mean[1][0]),
             mean[0][last] < 0.7 * mean[0][0] && mean[1][last] > 0.8 * mean[1][0]);
  book.order("Figure 10: tuned adaptive nearly flat and at or above adaptive", "small drop",
             fmt::format("{:.2f} -> {:.2f} GB/s", mean[3][0], mean[3][last]),
             mean[3][last] > 0.75 * mean[3][0] && mean[3][0] > mean[2][0]);
  // Global links carry 7.5 GB/s a node. 2,688 of 3,071 packets need them, and by way of a router anywhere in
  // the system each of those takes two, but for the root's being in one of its own two groups of the eight.
  const double valiant = 7.5 / (2688.0 / 3071 * (2 - 2.0 / 8));
  book.order(fmt::format("bounds: symmetric injection 7.5, Valiant {:.2f} GB/s", valiant), "not above",
             fmt::format("{:.2f}, {:.2f} GB/s", mean[0][0], mean[1][0]),
             mean[0][0] <= 7.6 && mean[1][0] <= valiant);
}

void aries_placement(Book& book) {
  Curves curves{"aries-figure-11", "Aries Figures 11 and 12: 384-node all-to-all by groups", "groups",
                "GB/s per job node"};
  for (const double background : {0.0, 0.5}) {
    Curves::Line line{background > 0 ? "busy machine" : "idle machine", {}};
    double low = 1e9, high = 0;
    for (const unsigned groups : {1u, 2u, 3u, 6u}) {
      sim::RunSpec spec;
      spec.machine = "aries";
      spec.nodes = "8";
      spec.bytes = 4096;
      spec.order = "shift";
      spec.ahead = kAhead;
      spec.grain = 8;
      spec.repeat = 1u << 20;
      spec.job_nodes = 384;
      spec.job_groups = groups;
      spec.background = background;
      const double us = book.options().brief ? 12 : 40;
      spec.warmup_us = us / 4;
      spec.until_us = us;
      spec.sample_us = us / 8;
      const auto r = book.run(spec);
      const double rate = r.payload_gb_per_node() * r.nodes / 384;
      low = std::min(low, rate);
      high = std::max(high, rate);
      line.points.push_back({groups, rate});
    }
    curves.lines.push_back(line);
    if (background > 0) {
      book.order("Figure 12: the same on a busy machine", "less than idle",
                 fmt::format("{:.2f} to {:.2f} GB/s", low, high), low > 0);
    } else {
      book.row({"Figure 11: 384-node job over 1, 2, 3, 6 groups, idle", "little variation",
                fmt::format("{:.2f} to {:.2f} GB/s", low, high), "10 %", "predicted",
                (high - low) / high <= 0.10});
    }
  }
  book.curves(curves);
}

void aries_scale(Book& book) {
  // What a machine sustains it shows when 1,024 outstanding packets a node have filled the network: 64 KiB
  // take 17 us at 3.8 GB/s. The first quarter is not measured.
  const double us = 80;
  const sim::SimResult small = aries(book, "adaptive", 4096, us, 7, "8"),
                       large = aries(book, "adaptive", 4096, us, 7, book.options().brief ? "16" : "64");
  const double before = small.payload_gb_per_node(), after = large.payload_gb_per_node();
  book.order(fmt::format("Figure 13: bandwidth per node, {} nodes against 3,072",
                         book.options().brief ? "6,144" : "24,576"),
             "good, sustained", fmt::format("{:.2f} against {:.2f} GB/s", after, before),
             small.outcome.steady && large.outcome.steady && after > 0.6 * before);
}

void quadrics(Book& book) {
  sim::Quadrics machine({.levels = 5});
  book.relative("Quadrics hardware barrier, 64 nodes", 6, machine.hardware_barrier(64).ns / 1000, 15, "us",
                "fitted");
  book.relative("Quadrics hardware barrier, 1,024 nodes", 10, machine.hardware_barrier(1024).ns / 1000, 15,
                "us");
  book.relative("Quadrics software barrier, 64 nodes", 15, machine.software_barrier(64) / 1000, 15, "us",
                "fitted");
  book.relative("Quadrics software barrier, 1,024 nodes", 30, machine.software_barrier(1024) / 1000, 15,
                "us");
  book.relative("Quadrics broadcast, 64 nodes", 288, machine.broadcast_mb_per_s(64, 1000), 15, "MB/s",
                "fitted");
  book.relative("Quadrics broadcast, 1,024 nodes", 140, machine.broadcast_mb_per_s(1024, 1000), 15, "MB/s",
                "fitted");
  book.relative("Quadrics allreduce, 1,024 nodes", 160, machine.allreduce(1024) / 1000, 15, "us", "fitted");
  Curves curves{"quadrics-figure-8", "Quadrics Figure 8: hot spot", "nodes", "MB/s at the hot node"};
  curves.log_x = true;
  Curves::Line line{"received", {}};
  double at64 = 0, at128 = 0, at512 = 0;
  for (const std::uint32_t nodes : {4u, 8u, 16u, 32u, 64u, 128u, 256u, 512u, 1024u}) {
    const double rate = machine.hot_spot(nodes, 2e6).mb_per_s;
    line.points.push_back({nodes, rate});
    if (nodes == 64) at64 = rate;
    if (nodes == 128) at128 = rate;
    if (nodes == 512) at512 = rate;
  }
  curves.lines.push_back(line);
  book.curves(curves);
  book.order("Quadrics Figure 8: hot spot flat to 128 nodes, then falling", "flat, falls",
             fmt::format("{:.0f} {:.0f} {:.0f} MB/s", at64, at128, at512),
             at128 > 0.9 * at64 && at512 < 0.9 * at128);
}

}  // namespace orrery::tool
