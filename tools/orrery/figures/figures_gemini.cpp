// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What "The Gemini Network" (Cray, 2010) says of bandwidths, section 6.2: from one node to another, across
// the bisection, over all of the machine; and of adaptive routing, section 1. The machine is
// machines/gemini.toml.
#include "emu/sim/scene/machine_timing.hpp"
#include "emu/sim/tile/tile_run.hpp"
#include "emu/sim/workload/traffic.hpp"
#include "tools/orrery/figures/figures_book.hpp"

#include <algorithm>
#include <array>

namespace orrery::tool {

namespace {

using sim::Node;

// Nodes that send full packets, each to its own receivers in turn: as fast as they go, or at random times.
class Streams final : public sim::Workload {
 public:
  // `packets_per_tick` of each node; 0: as many as go.
  explicit Streams(Node nodes, double packets_per_tick = 0)
      : to_(nodes), turn_(nodes, 0), due_(nodes, 0), gap_(packets_per_tick > 0 ? 1 / packets_per_tick : 0) {}
  Streams& add(Node from, Node to) {
    to_[from].push_back(to);
    return *this;
  }
  sim::Next next(Node node, std::uint32_t, sim::Tick now, sim::Random& random, sim::Send& out) override {
    if (to_[node].empty()) return sim::Next::idle;
    out.created = now;
    if (gap_ > 0) {
      out.created = static_cast<sim::Tick>(due_[node]);
      if (out.created > now) return sim::Next::later;
      due_[node] -= std::log(random.unit()) * gap_;
    }
    out.dst = to_[node][turn_[node]++ % to_[node].size()];
    out.payload = 64;
    return sim::Next::send;
  }

 private:
  std::vector<std::vector<Node>> to_;
  std::vector<std::uint32_t> turn_;
  std::vector<double> due_;
  double gap_;
};

// A Gemini machine of a shape in nodes. Nodes are numbered by Gemini: two on each.
class Gemini {
 public:
  Gemini(Book& book, std::array<std::uint32_t, 3> nodes)
      : book_(book),
        torus_(model::Torus::make(model::gemini_shape_of(nodes[0], nodes[1], nodes[2])).value()) {
    const model::BuiltMachine built = model::build_machine("gemini");
    if (!built.machine || timing_of(*built.machine, &timing_).refused())
      std::fprintf(stderr, "orrery: gemini: the machine file is not the simulator's\n");
  }
  const model::Torus& torus() const { return torus_; }
  Node node(std::uint32_t x, std::uint32_t y, std::uint32_t z) const {
    const auto& grid = torus_.grid();
    return 2 * (x % grid[0] + grid[0] * (y % grid[1] + grid[1] * (z % grid[2])));
  }
  // The node `steps` Geminis from node 0 along a dimension.
  Node along(int dimension, std::uint32_t steps) const {
    return node(dimension == 0 ? steps : 0, dimension == 1 ? steps : 0, dimension == 2 ? steps : 0);
  }
  Streams streams(double load = 0) const { return Streams(torus_.nodes(), load * uniform_peak() / 2); }
  // Packets of a node and tick to any node that fill the smallest bisection. Where all of them cross it:
  // half.
  double uniform_peak() const { return sim::torus_uniform_peak(torus_, timing_, 64); }
  sim::RateTraffic traffic(sim::Pattern pattern, double load) const {
    const Node nodes = torus_.nodes();
    const std::uint64_t seed = book_.options().seed;
    return {sim::Destinations(pattern, sim::Box{{nodes, 1, 1}}, 0, {1, 1, 1}, seed),
            nodes,
            {.packets_per_node_tick = load * uniform_peak(), .fifos = 1, .payload = 64, .seed = seed}};
  }

  // From `warmup` to `until` us.
  sim::SimResult run(sim::Workload& workload, double warmup, double until, bool adaptive = true,
                     std::span<const sim::FailedLink> failed = {}) {
    sim::TorusTiming timing = timing_;
    timing.adaptive = adaptive;
    sim::RunLimits limits;
    limits.threads = book_.options().threads;
    limits.warmup = static_cast<sim::Tick>(warmup * 1000 / sim::kTileTickNs);
    limits.until = static_cast<sim::Tick>(until * 1000 / sim::kTileTickNs);
    limits.sample_every = 10000;
    sim::SimResult result = sim::run_torus(torus_, timing, workload, limits, book_.options().seed, true,
                                           {.links = {failed.begin(), failed.end()}});
    book_.spent(result);
    return result;
  }
  // GB/s of payload that all receive together.
  double gb_per_s(sim::Workload& workload, double warmup, double until, bool adaptive = true,
                  std::span<const sim::FailedLink> failed = {}) {
    const sim::SimResult result = run(workload, warmup, until, adaptive, failed);
    if (!result.outcome.conserved) return std::numeric_limits<double>::quiet_NaN();
    return result.payload_gb_per_node() * result.nodes;
  }
  double one_way(Node to, bool adaptive = true, std::span<const sim::FailedLink> failed = {}) {
    Streams pair = streams();
    return gb_per_s(pair.add(0, to), 10, 30, adaptive, failed);
  }
  // Of either way, where both are busy.
  double both_ways(Node to) {
    Streams pair = streams();
    return gb_per_s(pair.add(0, to).add(to, 0), 10, 30) / 2;
  }
  // Bytes on the wire, responses with them, for each byte of payload.
  double wire_bytes_per_byte() const {
    const sim::TorusFabric fabric(torus_, timing_);
    return (fabric.flits_for(64) + timing_.nic.response_flits) * timing_.errors.flit_bits / 8.0 / 64;
  }
  // The busiest of the links that lead from one Gemini to the next, against their mean: the mean over all
  // such groups of links.
  double unevenness(const sim::SimResult& result) const {
    double sum = 0;
    std::size_t groups = 0;
    for (Node router = 0; router < torus_.routers(); ++router)
      for (int d = 0; d < model::kDirections; ++d) {
        const auto direction = static_cast<model::Direction>(d);
        double most = 0, all = 0;
        const std::uint32_t count = torus_.parallel(direction);
        for (std::uint32_t k = 0; k < count; ++k) {
          const double busy = result.link_busy[torus_.link(router, direction, k)];
          most = std::max(most, busy);
          all += busy;
        }
        if (all == 0) continue;
        sum += most * count / all;
        ++groups;
      }
    return sum / static_cast<double>(groups);
  }

 private:
  Book& book_;
  model::Torus torus_;
  sim::TorusTiming timing_;
};

constexpr const char* kDimensions[] = {"x", "y", "z"};

void point_to_point(Book& book) {
  // Titan's torus: 25 x 16 x 24 Geminis. Its rates are measurements over MPI on the machine itself.
  Gemini titan(book, {25, 32, 24});
  constexpr double kTitan[] = {5.87, 3.47, 6.09};
  std::array<double, 3> near{}, far{};
  for (int d = 0; d < 3; ++d) {
    const auto at = static_cast<std::size_t>(d);
    near[at] = titan.one_way(titan.along(d, 1));
    far[at] = titan.one_way(titan.along(d, (titan.torus().grid()[at] - 1) / 2));
    book.relative(fmt::format("Gemini: Titan's nodes one Gemini apart in {}", kDimensions[d]), kTitan[d],
                  near[at], 10, "GB/s");
  }
  book.row({"Gemini: one transfer over the links of x and z", ">= 5 GB/s",
            fmt::format("{:.2f}, {:.2f} GB/s", near[0], near[2]), "bound", "predicted",
            near[0] >= 5 && near[2] >= 5});
  book.order("Gemini: the same 12, 7, 11 Geminis apart in x, y, z", "no less",
             fmt::format("{:.2f} {:.2f} {:.2f} GB/s", far[0], far[1], far[2]),
             far[0] > 0.97 * near[0] && far[1] > 0.97 * near[1] && far[2] > 0.97 * near[2]);
  book.relative("Gemini: a link's payload, both ways busy", 2.9, titan.both_ways(titan.along(1, 1)), 10,
                "GB/s");
  Streams spread = titan.streams();
  for (const auto& [x, z] : {std::pair{1u, 0u}, {24u, 0u}, {0u, 1u}, {0u, 23u}})
    spread.add(0, titan.node(x, 0, z));
  book.relative("Gemini: a node's puts to several (FMA)", 8, titan.gb_per_s(spread, 10, 30), 10, "GB/s");
  book.relative("Gemini: two nodes of one Gemini, both ways (BTE)", 7, titan.both_ways(1), 10, "GB/s");
}

void whole_machine(Book& book) {
  // Section 6.2's example: 10 x 16 x 24 nodes. Half way round z every packet crosses one of the two cuts
  // once. Offered are 95 % of what the links of the smallest cut carry; sources that push as much as goes
  // fill the buffers, and less goes through (docs/simulator.md).
  constexpr double kOffered = 0.95;
  Gemini machine(book, {10, 16, 24});
  const auto& grid = machine.torus().grid();
  Streams across = machine.streams(kOffered);
  for (Node x = 0; x < grid[0]; ++x)
    for (Node y = 0; y < grid[1]; ++y)
      for (Node z = 0; z < grid[2]; ++z)
        for (Node nic : {0u, 1u})
          across.add(machine.node(x, y, z) + nic, machine.node(x, y, z + grid[2] / 2) + nic);
  const double wire = machine.wire_bytes_per_byte();
  const double warmup = book.options().brief ? 8 : 20, until = book.options().brief ? 12 : 40;
  book.relative("Gemini: bisection, 10x16x24 nodes, all of it crossing", 2995,
                wire * machine.gb_per_s(across, warmup, until), 10, "GB/s");
  sim::RateTraffic uniform = machine.traffic(sim::Pattern::uniform, kOffered);
  book.relative("Gemini: global bandwidth, the same, to any node", 5990,
                wire * machine.gb_per_s(uniform, warmup, until), 10, "GB/s");
}

void spreading(Book& book) {
  Gemini machine(book, {8, 16, 8});
  const Node next = machine.along(0, 1);
  const double hashed = machine.one_way(next, false), adaptive = machine.one_way(next);
  book.order("Gemini: one transfer in x, adaptive against hashed", "over all links",
             fmt::format("{:.2f} > {:.2f} GB/s", adaptive, hashed), adaptive > 7.5 * hashed);
  const std::array<sim::FailedLink, 1> lost = {
      {{0, machine.torus().link(0, model::Direction::x_plus, 3) % machine.torus().links_per_router()}}};
  const double masked = machine.one_way(next, true, lost);
  book.order("Gemini: the same with one of the eight links lost", "masked",
             fmt::format("{:.2f} GB/s, {:.3f} of it", masked, masked / adaptive), masked > 0.86 * adaptive);
  // To any node with load enough to queue: many flows a link, so hashing spreads them too. To one partner
  // each: few flows a link, as many as go.
  for (const auto& [pattern, load] :
       {std::pair{sim::Pattern::uniform, 0.9}, {sim::Pattern::permutation, 0.0}}) {
    std::array<sim::SimResult, 2> result;
    for (const bool spread : {false, true}) {
      sim::RateTraffic traffic = machine.traffic(pattern, load);
      result[spread] = machine.run(traffic, 10, 20, spread);
    }
    const std::string name =
        std::string("Gemini: ") + (load > 0 ? "uniform load of 90 %" : "one partner each, as fast as goes");
    const double even = machine.unevenness(result[1]), uneven = machine.unevenness(result[0]);
    book.order(name + ", a neighbour's busiest link over its links' mean", "adaptive evener",
               fmt::format("{:.2f} < {:.2f}", even, uneven), even < uneven);
    if (load > 0) {
      const double quick = result[1].mean_latency_ns() / 1000, slow = result[0].mean_latency_ns() / 1000;
      book.order(name + ", latency", "adaptive less", fmt::format("{:.2f} < {:.2f} us", quick, slow),
                 quick < slow);
    } else {
      const double much = result[1].payload_gb_per_node(), less = result[0].payload_gb_per_node();
      book.order(name + ", payload", "adaptive more", fmt::format("{:.2f} > {:.2f} GB/s a node", much, less),
                 much > less);
    }
  }
  if (book.options().brief) return;
  Curves curves{"gemini-adaptive", "Gemini, 8x16x8 nodes: one partner each, drawn at random",
                "load, share of the uniform peak", "GB/s per node"};
  for (const bool spread : {false, true}) {
    Curves::Line line{spread ? "adaptive" : "hashed", {}};
    for (const double load : {0.1, 0.2, 0.3, 0.4, 0.6, 0.8}) {
      sim::RateTraffic traffic = machine.traffic(sim::Pattern::permutation, load);
      line.points.push_back({load, machine.run(traffic, 10, 20, spread).payload_gb_per_node()});
    }
    curves.lines.push_back(line);
  }
  book.curves(curves);
}

}  // namespace

void gemini(Book& book) {
  point_to_point(book);
  whole_machine(book);
  spreading(book);
}

}  // namespace orrery::tool
