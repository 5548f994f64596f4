// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/quadrics/quadrics_run.hpp"

#include "emu/base/wait.hpp"
#include "emu/sim/engine/engine.hpp"
#include "emu/sim/failure/failed_links.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace orrery::sim {

namespace {

constexpr std::array<std::string_view, 4> kCollectives{"broadcast", "barrier", "software-barrier",
                                                       "allreduce"};

// Quadrics as a router of the engine: one site, whose events say when to let the circuits go on and which
// nodes to ask for a packet. The order in a tick is the circuits' own, by their times in between.
class CircuitRouter {
 public:
  static constexpr int kHorizonLog2 = 14;

  CircuitRouter(const QuadricsConfig& config, Node nodes) : net_(config), senders_(nodes) {
    for (Node n = 0; n < nodes; ++n) senders_[n].random = Random(config.seed ^ 0x51u, n);
    net_.begin();
  }
  Quadrics& net() { return net_; }
  Node sites() const { return 1; }
  Node partition_grain() const { return 1; }
  Tick min_cross_delay() const { return 1; }

  void start(Partition& part, Node) {
    for (Node n = 0; n < senders_.size(); ++n) asked_.push_back(n);
    part.mark(0);
  }
  void apply(Partition& part, const Event& event, Tick now) {
    if (event.kind() == kAsk) asked_.push_back(event.packet);
    if (event.kind() == kGoOn && now == due_) due_ = kNever;
    if (marked_ == now) return;
    marked_ = now;
    part.mark(0);
  }
  void arbitrate(Partition& part, Node, Tick now) {
    std::sort(asked_.begin(), asked_.end());
    for (const Node node : asked_) ask(part, node, now, static_cast<double>(now) * kQuadricsTickNs);
    asked_.clear();
    net_.run(static_cast<double>(now + 1) * kQuadricsTickNs, [&](Node src, double ns, bool released) {
      if (!released) return deliver(part, src, now, ns);
      senders_[src].busy = false;
      ask(part, src, now, ns);
    });
    Counters& counters = part.counters();
    const Quadrics::Totals& totals = net_.totals();
    counters.link_hops = totals.links_taken[0] + totals.links_taken[1];
    counters.link_ticks = static_cast<std::uint64_t>(totals.data_ns / kQuadricsTickNs);
    std::copy(totals.links_taken.begin(), totals.links_taken.end(), counters.vc_hops.begin());
    counters.retries = totals.retries;
    const double next = net_.next_at();
    if (std::isinf(next)) return;
    const Tick at = std::max(now + 1, static_cast<Tick>(next / kQuadricsTickNs));
    if (at >= due_) return;
    due_ = at;
    part.post(at, {0, kGoOn, 0, 0, 0});
  }
  void prefetch(const Partition&, const Event&) const {}
  void look(std::vector<VcUse>* vcs) const {
    vcs->resize(2);
    for (model::LinkId link = 0; link < net_.tree().link_slots(); ++link) {
      const std::uint32_t held = net_.held(link);
      for (std::uint32_t v = 0; v < std::min(2u, net_.room(link)); ++v) (*vcs)[v].add(held > v, 1);
    }
  }

  // Ticks that each link carried data: a row for four positions of a boundary, its links up, then down.
  std::vector<std::uint32_t> link_busy() const {
    const model::FatTree& tree = net_.tree();
    std::vector<std::uint32_t> busy;
    for (std::uint32_t boundary = 0; boundary < tree.levels(); ++boundary)
      for (std::uint32_t at = 0; at < tree.nodes(); at += model::FatTree::kArity)
        for (const bool up : {true, false})
          for (std::uint32_t i = at; i < at + model::FatTree::kArity; ++i)
            busy.push_back(static_cast<std::uint32_t>(
                net_.data_ns(up ? tree.up_link(boundary, i) : tree.down_link(boundary, i)) /
                kQuadricsTickNs));
    return busy;
  }
  const model::FatTree& tree() const { return net_.tree(); }
  std::size_t bytes() const {
    return senders_.capacity() * (sizeof(Sender) + sizeof(double) * 16) +
           tree().link_slots() * (sizeof(double) * 8);
  }

 private:
  enum Kind : std::uint8_t { kGoOn, kAsk };
  struct Sender {
    Random random;
    std::uint32_t packet = 0;
    bool busy = false;  // its circuit is not yet released
  };

  // The node's next packet, from `ns` on, which lies in the tick `now`.
  void ask(Partition& part, Node node, Tick now, double ns) {
    Sender& sender = senders_[node];
    if (sender.busy) return;
    Send send;
    switch (part.workload().next(node, 0, now, sender.random, send)) {
      case Next::idle:
        return;
      case Next::later:
        return part.post(std::max(now + 1, send.created), {0, kAsk, 0, 0, node});
      case Next::send:
        break;
    }
    Packet packet = packet_of(node, send);
    packet.hops = static_cast<std::uint8_t>(2 * (model::FatTree::nca_level(node, send.dst) + 1));
    sender.packet = part.pool().add(packet);
    sender.busy = true;
    ++part.counters().injected;
    net_.send(node, send.dst, send.payload, ns, (send.flags & kPriority) != 0);
  }
  void deliver(Partition& part, Node src, Tick now, double ns) {
    const Packet packet = part.pool()[senders_[src].packet];
    part.pool().remove(senders_[src].packet);
    part.count_delivery(packet.dst, packet, now);
    if (part.workload().delivered(packet.dst, packet, now, false)) ask(part, packet.dst, now, ns);
  }

  Quadrics net_;
  std::vector<Sender> senders_;
  std::vector<Node> asked_;
  Tick due_ = kNever, marked_ = kNever;
};

void describe(const QuadricsConfig& config, Node nodes, SimResult* result) {
  const std::uint32_t whole = 1u << (2 * config.levels);
  result->shape =
      nodes == whole ? fmt::format("4^{}", config.levels) : fmt::format("{} of 4^{}", nodes, config.levels);
  result->nodes = nodes;
  result->links = std::uint64_t{2} * config.levels * whole;
  result->tick_ns = kQuadricsTickNs;
  result->vc_names = {"first circuit", "second circuit"};
}

}  // namespace

double quadrics_uniform_peak(const QuadricsConfig& config, std::uint32_t payload) {
  return config.bytes_per_ns * kQuadricsTickNs / payload;
}

Refusal run_quadrics(const QuadricsConfig& config, Node nodes, std::uint32_t failed_links, Workload& workload,
                     const RunLimits& limits, SimResult* out) {
  CircuitRouter router(config, nodes);
  if (Refusal no = fail_links(&router.net(), failed_links, config.seed); no.refused()) return no;
  RunLimits alone = limits;
  alone.threads = alone.partitions = 1;
  Engine<CircuitRouter> engine(router, workload, alone);
  SimResult result;
  const std::int64_t started = monotonic_ns();
  result.outcome = engine.run();
  result.wall_seconds = static_cast<double>(monotonic_ns() - started) * 1e-9;
  describe(config, nodes, &result);
  result.state_bytes = router.bytes() + workload.bytes();
  result.offered = workload.offered_per_node_tick();
  result.link_busy = router.link_busy();
  result.ports = 2 * model::FatTree::kArity;
  *out = std::move(result);
  return {};
}

bool is_collective(const std::string& name) {
  return std::find(kCollectives.begin(), kCollectives.end(), name) != kCollectives.end();
}

Refusal run_collective(const QuadricsConfig& config, Node nodes, const std::string& name, std::uint64_t bytes,
                       std::uint64_t repeat, SimResult* out) {
  if (name == "allreduce" ? bytes != 0 && bytes != 8 : name != "broadcast" && bytes != 0)
    return {fmt::format("{} of {} bytes: expected {}", name, bytes,
                        name == "allreduce" ? "8, one word" : "none, it carries no data")};
  const std::uint64_t packets = bytes == 0 ? 1 : (bytes + config.packet - 1) / config.packet;
  if (packets * repeat > 1'000'000)
    return {fmt::format("{} packets one after the other: expected at most 1000000", packets * repeat)};
  const std::int64_t started = monotonic_ns();
  Quadrics net(config);
  SimResult result;
  Counters& total = result.outcome.total;
  const std::uint64_t others = nodes - 1;
  const auto tree = net.tree().multicast(0, 0, nodes - 1).value();
  // A packet of `size` bytes to all others by the multicast tree.
  const auto multicast = [&](std::uint32_t size) {
    total.injected += others;
    total.copies += others - 1;
    total.delivered += others;
    total.delivered_bytes += others * size;
    const std::uint64_t links = tree.root_level + 1 + tree.branches;
    total.link_hops += links;
    total.delivered_hops += links;
    total.link_ticks +=
        static_cast<std::uint64_t>(static_cast<double>(links * size) / config.bytes_per_ns / kQuadricsTickNs);
  };
  // Messages between a child and its parent, one for each node but the first.
  const auto messages = [&] {
    total.injected += others;
    total.delivered += others;
  };
  double now = 0;
  for (std::uint64_t i = 0; i < repeat; ++i) {
    const double from = now;
    if (name == "broadcast") {
      std::uint64_t left = bytes == 0 ? config.packet : bytes;
      while (left != 0) {
        const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, config.packet));
        now = net.multicasts({now}, nodes, size).front();
        multicast(size);
        left -= size;
      }
    } else if (name == "barrier") {
      const Quadrics::Barrier barrier = net.hardware_barrier(nodes);
      for (std::uint32_t k = 0; k <= barrier.attempts; ++k) multicast(0);
      now += barrier.ns;
    } else if (name == "software-barrier") {
      now += net.software_barrier(nodes);
      messages(), messages();
    } else {
      now += net.allreduce(nodes);
      messages();
      multicast(8);
    }
    result.outcome.latency.add(static_cast<Tick>((now - from) / kQuadricsTickNs));
  }
  describe(config, nodes, &result);
  total.retries = net.totals().retries;
  result.outcome.end = static_cast<Tick>(now / kQuadricsTickNs);
  result.outcome.conserved = total.injected == total.delivered;
  result.wall_seconds = static_cast<double>(monotonic_ns() - started) * 1e-9;
  *out = std::move(result);
  return {};
}

}  // namespace orrery::sim
