// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// A textbook torus of synchronous routers, to hold beside other simulators: 8x8x8, dimension order, two
// dateline classes of --buffer flits a link, packets of --flits flits, one flit a cycle on every link, in and
// out of every node. A tick is a cycle. Every node makes a packet in a cycle with one probability, for any
// node (itself too). For each load, in flits a node and cycle (1 is what links and nodes can take): mean
// latency from a packet's making to its last flit's arrival, accepted load, packets and packet-hops a second
// of processor time. --hop, --ends: cycles of a hop and of the way into and out of the network together, as
// the other simulator's pipelines have them.
#include "bench/common/options.hpp"
#include "emu/sim/tile/tile_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <vector>

namespace {

using namespace orrery;

// In each cycle a packet with probability `rate`; whatever waits does so at its source.
class EachCycle final : public sim::Workload {
 public:
  EachCycle(sim::Node nodes, double rate, std::uint16_t payload)
      : nodes_(nodes), log_none_(std::log1p(-std::min(rate, 0.999999))), payload_(payload), due_(nodes, 0) {}
  sim::Next next(sim::Node node, std::uint32_t, sim::Tick now, sim::Random& random, sim::Send& out) override {
    sim::Tick& due = due_[node];
    if (due == 0) due = gap(random);
    out.created = due;
    if (due > now) return sim::Next::later;
    out.dst = random.below(nodes_);
    out.payload = payload_;
    due += gap(random);
    return sim::Next::send;
  }
  std::size_t bytes() const override { return due_.capacity() * sizeof(sim::Tick); }

 private:
  // Cycles to the next packet: 1 or more.
  sim::Tick gap(sim::Random& random) const {
    return 1 + static_cast<sim::Tick>(std::log(random.unit()) / log_none_);
  }
  sim::Node nodes_;
  double log_none_;
  std::uint16_t payload_;
  std::vector<sim::Tick> due_;  // when each node's next packet is made
};

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

int main(int argc, char** argv) {
  unsigned flits = 1, buffer = 64, hop = 3, ends = 5;
  std::size_t cycles = 1600, warmup = 500, seed = 1;
  double only = 0;
  bench::Options options("A synchronous 8x8x8 torus");
  options.number("--flits", &flits, "Flits of a packet", 1, 64);
  options.number("--buffer", &buffer, "Flits of buffer of a class and link", 1, 4096);
  options.number("--hop", &hop, "Cycles from router to router", 1, 64);
  options.number("--ends", &ends, "Cycles into and out of the network", 2, 256);
  options.number("--cycles", &cycles, "Cycles simulated", 1, 100'000'000);
  options.number("--warmup", &warmup, "Cycles before latencies count", 0, 100'000'000);
  options.number("--seed", &seed, "Of the random streams");
  options.number("--load", &only, "Flits a node and cycle; 0: 0.1 to 0.6, and 0.99", 0, 1);
  options.parse(argc, argv);
  std::vector<double> loads{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.99};
  if (only > 0) loads = {only};
  if (warmup >= cycles || buffer < flits) {
    std::fprintf(stderr, "--warmup %zu, --buffer %u: expected less than --cycles, and --flits or more\n",
                 warmup, buffer);
    return 2;
  }

  const model::Torus torus = model::Torus::make(model::plain_torus_shape(8, 8, 8)).value();
  sim::TorusTiming timing;
  timing.packet_payload = 8 * flits;
  timing.header_flits = 0;
  timing.data_unit = 8;
  timing.data_flits = 1;
  timing.flit_ticks = 1;
  timing.hop = hop;
  timing.buffer_flits = buffer;
  timing.nic.request_base = flits;
  timing.nic.eject_base = flits;
  timing.nic.inject_flits = std::max(buffer, 4 * flits);
  timing.nic.latency_in = ends - 1;  // a flit's time out of the network is the ejection's
  std::printf("%8s %10s %10s %14s %14s\n", "load", "latency", "accepted", "packets/cpu s", "hops/cpu s");
  for (const double load : loads) {
    EachCycle workload(torus.nodes(), load / flits, static_cast<std::uint16_t>(8 * flits));
    sim::RunLimits limits;
    limits.until = cycles;
    limits.warmup = warmup;
    limits.sample_every = warmup == 0 ? cycles : warmup;
    const double before = processor_seconds();
    const sim::SimResult r = sim::run_torus(torus, timing, workload, limits, seed);
    const double took = processor_seconds() - before;
    if (!r.outcome.conserved || r.outcome.stop == sim::Stop::deadlock) {
      std::fprintf(stderr, "load %.2f: %s\n", load, sim::stop_name(r.outcome.stop));
      return 1;
    }
    std::printf("%8.3f %10.2f %10.4f %14.0f %14.0f\n", load, r.outcome.latency.mean(), r.accepted() * flits,
                static_cast<double>(r.outcome.total.delivered) / took,
                static_cast<double>(r.outcome.total.link_hops) / took);
    std::fflush(stdout);
  }
  return 0;
}
