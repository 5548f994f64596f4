// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/measure.hpp"

#include "emu/model/collective.hpp"
#include "emu/model/quote.hpp"
#include "emu/model/structure.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <vector>

namespace orrery::model {

namespace {

using Arguments = std::vector<std::string_view>;
using Measured = std::optional<double>;

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The first node that is `hops` away from node 0.
std::optional<NodeId> node_at_hops(const Pricing& p, std::uint32_t hops) {
  for (NodeId n = 1; n < p.nodes; ++n) {
    if (path_hops(p, 0, n) == hops) return n;
  }
  return std::nullopt;
}

std::optional<double> latency_us(const Machine& m, Op op, std::uint64_t bytes, std::uint32_t hops) {
  const auto dst = node_at_hops(m.pricing, hops);
  if (!dst) return std::nullopt;
  return quote(m.pricing, {.op = op, .src = 0, .dst = *dst, .bytes = bytes}, nullptr).data_at.micros();
}

struct Flow2 {
  NodeId src, dst;
};

struct Rates {
  double operations_per_us = 0;  // of all flows together
  double gigabytes_per_second = 0;
};

// All flows issue back to back, each by its own processor, in order of time; rates over the second half.
Rates stream(const Machine& m, Op op, std::uint64_t bytes, const std::vector<Flow2>& flows) {
  const Pricing& p = m.pricing;
  const std::size_t needed = LinkState::bytes_needed(p, LinkState::Kind::exact);
  const std::unique_ptr<std::byte[]> memory(new std::byte[needed + 64]);
  auto* base = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory.get()) + 63) / 64 * 64);
  LinkState state = LinkState::create({base, needed}, p, LinkState::Kind::exact).value();
  constexpr int kRounds = 150;
  std::vector<Picos> next(flows.size());
  // Not all start in the same picosecond, as no processes do.
  for (std::size_t i = 0; i < flows.size(); ++i) next[i] = Picos{static_cast<std::int64_t>(i) * 100};
  std::vector<std::int64_t> done;
  const std::size_t all = flows.size() * kRounds;
  done.reserve(all);
  while (done.size() < all) {
    const auto at = static_cast<std::size_t>(std::min_element(next.begin(), next.end()) - next.begin());
    const Quote q = quote(
        p, {.op = op, .src = flows[at].src, .dst = flows[at].dst, .bytes = bytes, .now = next[at]}, &state);
    // A processor goes on when its store is taken: the NIC pushes back when it is behind.
    next[at] =
        std::max(next[at] + q.cpu_busy, Picos{state.nic(flows[at].src).transmit_free.load()} - q.cpu_busy);
    // Of descriptors the block engine takes one ahead.
    if (p.ops[static_cast<std::size_t>(op)].serial.count() > 0 && p.network != Network::fat_tree)
      next[at] = std::max(next[at], Picos{state.nic(flows[at].src).engine.load()} - q.cpu_busy);
    next[at] += Picos{1};
    done.push_back(q.data_at.count());
  }
  std::sort(done.begin(), done.end());
  const std::size_t half = all / 2;
  const double us = static_cast<double>(done[all - 1] - done[half]) / 1e6;
  Rates r;
  r.operations_per_us = static_cast<double>(all - 1 - half) / us;
  r.gigabytes_per_second = r.operations_per_us * static_cast<double>(bytes) / 1e3;
  return r;
}

std::vector<Flow2> between(NodeId a, NodeId b, std::uint64_t processes, bool both) {
  std::vector<Flow2> flows;
  for (std::uint64_t i = 0; i < processes; ++i) {
    flows.push_back({a, b});
    if (both) flows.push_back({b, a});
  }
  return flows;
}

Measured m_latency(const Machine& m, Op op, const Arguments& a) {
  const auto bytes = number(a[1]), hops = number(a[2]);
  if (!bytes || !hops) return std::nullopt;
  return latency_us(m, op, *bytes, static_cast<std::uint32_t>(*hops));
}

// Bandwidth of one message after the other, GB/s.
Measured m_pingpong(const Machine& m, Op op, const Arguments& a) {
  const auto us = m_latency(m, op, a);
  return us ? Measured(static_cast<double>(*number(a[1])) / *us / 1e3) : std::nullopt;
}

// Latency straight on from that over one hop: for ways that are longer than the machine at hand.
Measured m_latency_beyond(const Machine& m, Op op, const Arguments& a) {
  const auto bytes = number(a[1]), hops = number(a[2]);
  if (!bytes || !hops || *hops == 0 || *hops > 1000) return std::nullopt;
  const auto one = latency_us(m, op, *bytes, 1);
  return one ? Measured(*one + static_cast<double>(*hops - 1) * m.pricing.hop.micros()) : std::nullopt;
}

// Until the source knows that it is done.
Measured m_completion(const Machine& m, Op op, const Arguments& a) {
  const auto bytes = number(a[1]), hops = number(a[2]);
  const auto dst = bytes && hops ? node_at_hops(m.pricing, static_cast<std::uint32_t>(*hops)) : std::nullopt;
  if (!dst) return std::nullopt;
  return quote(m.pricing, {.op = op, .src = 0, .dst = *dst, .bytes = *bytes}, nullptr)
      .local_event_at.micros();
}

// Latency without the network's own part.
Measured m_endpoint(const Machine& m, Op op, const Arguments& a) {
  const auto bytes = number(a[1]);
  const auto far = bytes ? latency_us(m, op, *bytes, 1) : std::nullopt;
  if (!far) return std::nullopt;
  return *far - m.pricing.hop.micros();
}

Measured m_per_hop(const Machine& m, Op op, const Arguments& a) {
  const auto bytes = number(a[1]);
  if (!bytes) return std::nullopt;
  const auto one = latency_us(m, op, *bytes, 1), two = latency_us(m, op, *bytes, 2);
  return one && two ? Measured((*two - *one) * 1e3) : std::nullopt;
}

// Slope of latency, as printed: from `a` bytes to `b` bytes, microseconds.
Measured m_jump(const Machine& m, Op op, const Arguments& a) {
  const auto low = number(a[1]), high = number(a[2]);
  if (!low || !high) return std::nullopt;
  const auto x = latency_us(m, op, *low, 1), y = latency_us(m, op, *high, 1);
  return x && y ? Measured(*y - *x) : std::nullopt;
}

Measured m_stream(const Machine& m, Op op, const Arguments& a, bool both, bool rate) {
  const auto bytes = number(a[1]), processes = number(a[2]), hops = a.size() > 3 ? number(a[3]) : 1;
  if (!bytes || !processes || !hops || *processes == 0 || *processes > 256) return std::nullopt;
  const auto dst = *hops == 0 ? std::optional<NodeId>(m.pricing.network == Network::gemini_torus
                                                          ? m.pricing.torus.shape().nodes[0]
                                                          : 1)
                              : node_at_hops(m.pricing, static_cast<std::uint32_t>(*hops));
  if (!dst) return std::nullopt;
  const Rates r = stream(m, op, *bytes, between(0, *dst, *processes, both));
  return rate ? r.operations_per_us : r.gigabytes_per_second;
}

// What the bytes of the longer of two messages beyond the shorter take, in a stream of one process; GB/s.
Measured m_asymptote(const Machine& m, Op op, const Arguments& a) {
  const auto low = number(a[1]), high = number(a[2]);
  const auto dst = node_at_hops(m.pricing, 1);
  if (!low || !high || *low >= *high || !dst) return std::nullopt;
  const auto flows = between(0, *dst, 1, false);
  const double us =
      1 / stream(m, op, *high, flows).operations_per_us - 1 / stream(m, op, *low, flows).operations_per_us;
  return static_cast<double>(*high - *low) / us / 1e3;
}

// Operations a second that one target serves to many sources, millions.
Measured m_target_rate(const Machine& m, Op op, const Arguments& a) {
  const auto bytes = number(a[1]), sources = number(a[2]);
  if (!bytes || !sources || *sources == 0 || *sources >= m.pricing.nodes) return std::nullopt;
  std::vector<Flow2> flows;
  for (NodeId n = 1; n <= *sources; ++n) {
    for (int process = 0; process < 4; ++process) flows.push_back({n, 0});
  }
  return stream(m, op, *bytes, flows).operations_per_us;
}

// Smallest size with half the bandwidth of 1 MiB.
Measured m_half_peak(const Machine& m, Op op, const Arguments& a) {
  const auto processes = number(a[1]);
  const auto dst = node_at_hops(m.pricing, 1);
  if (!processes || !dst || *processes == 0 || *processes > 256) return std::nullopt;
  const auto flows = between(0, *dst, *processes, false);
  const double peak = stream(m, op, 1 << 20, flows).gigabytes_per_second;
  std::uint64_t low = 1, high = 1 << 16;
  while (low < high) {
    const std::uint64_t middle = (low + high) / 2;
    if (stream(m, op, middle, flows).gigabytes_per_second * 2 >= peak) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return static_cast<double>(low);
}

// latency of `op` over that of another operation.
Measured m_ratio(const Machine& m, Op op, const Arguments& a) {
  const auto other = op_by_name(a[1]);
  const auto bytes = number(a[2]);
  if (!other || !bytes) return std::nullopt;
  const auto x = latency_us(m, op, *bytes, 1), y = latency_us(m, *other, *bytes, 1);
  return x && y ? Measured(*x / *y * 100) : std::nullopt;
}

Measured m_difference(const Machine& m, Op op, const Arguments& a) {
  const auto other = op_by_name(a[1]);
  const auto bytes = number(a[2]);
  if (!other || !bytes) return std::nullopt;
  const auto x = latency_us(m, op, *bytes, 1), y = latency_us(m, *other, *bytes, 1);
  return x && y ? Measured(*x - *y) : std::nullopt;
}

Measured m_rate_ratio(const Machine& m, Op op, const Arguments& a) {
  const auto other = op_by_name(a[1]);
  const auto bytes = number(a[2]);
  const auto dst = node_at_hops(m.pricing, 1);
  if (!other || !bytes || !dst) return std::nullopt;
  const auto flows = between(0, *dst, 8, false);
  return stream(m, op, *bytes, flows).operations_per_us / stream(m, *other, *bytes, flows).operations_per_us;
}

// Greatest relative difference of latency over all distances, percent.
Measured m_spread(const Machine& m, Op op, const Arguments& a) {
  const auto bytes = number(a[1]);
  if (!bytes) return std::nullopt;
  double low = 1e300, high = 0;
  for (NodeId n = 1; n < m.pricing.nodes; n *= 4) {
    const double us =
        quote(m.pricing, {.op = op, .src = 0, .dst = n, .bytes = *bytes}, nullptr).data_at.micros();
    low = std::min(low, us);
    high = std::max(high, us);
  }
  return (high - low) / low * 100;
}

Measured m_collective(const Machine& m, const Arguments& a) {
  const auto which = collective_by_name(a[0]);
  const auto nodes = number(a[1]);
  if (!which || !nodes || *nodes == 0 || *nodes > m.pricing.nodes) return std::nullopt;
  return quote_collective(m, *which, static_cast<std::uint32_t>(*nodes), 8).time.micros();
}

// MB/s at the source of a broadcast of one long message.
Measured m_broadcast(const Machine& m, const Arguments& a) {
  const auto nodes = number(a[0]);
  if (!nodes || *nodes < 2 || *nodes > m.pricing.nodes) return std::nullopt;
  constexpr std::uint64_t kLong = 384 * 1000;
  const auto q = quote_collective(m, Collective::broadcast, static_cast<std::uint32_t>(*nodes), kLong);
  return static_cast<double>(kLong) / q.time.micros();
}

// Software barrier less hardware barrier, the least over all tree sizes up to the machine's.
Measured m_barrier_margin(const Machine& m, const Arguments&) {
  double least = 1e300;
  for (std::uint32_t n = 4; n <= m.pricing.nodes; n *= 4) {
    least = std::min(least, (quote_collective(m, Collective::software_barrier, n, 8).time -
                             quote_collective(m, Collective::hardware_barrier, n, 8).time)
                                .micros());
  }
  return least;
}

Measured m_hot_spot(const Machine& m, const Arguments& a) {
  const auto nodes = number(a[0]), than = number(a[1]);
  if (!nodes || !than) return std::nullopt;
  const auto rate = [&](std::uint64_t n) {
    return static_cast<double>(hot_spot_rate(m, static_cast<std::uint32_t>(n)).bytes_per_second());
  };
  if (*nodes < 2 || *than < 2 || *nodes > m.pricing.nodes || *than > m.pricing.nodes) return std::nullopt;
  return rate(*nodes) / rate(*than) * 100;
}

}  // namespace

std::string_view measure_help() {
  return "latency(op, bytes, hops)\nlatency_beyond(op, bytes, hops)\ncompletion(op, bytes, "
         "hops)\npingpong(op, bytes, hops)\nendpoint(op, bytes)\nper_hop(op, "
         "bytes)\njump(op, bytes, bytes)\n"
         "ratio(op, op, bytes)\ndifference(op, op, bytes)\nrate_ratio(op, op, bytes)\nspread(op, bytes)\n"
         "bandwidth(op, bytes, processes[, hops])\nbidirectional(op, bytes, processes[, hops])\n"
         "rate(op, bytes, processes)\ntarget_rate(op, bytes, sources)\nhalf_peak(op, "
         "processes)\nasymptote(op, bytes, bytes)\n"
         "collective(name, nodes)\nbroadcast(nodes)\nbarrier_margin()\nhot_spot(nodes, "
         "nodes)\nstructure(name)\n";
}

Measured measure(const Machine& m, std::string_view text) {
  // "mpi: latency(...)": of the machine with that layer.
  if (const auto colon = text.find(": "); colon != std::string_view::npos) {
    Description with = m.description;
    if (!add_layer(&with, text.substr(0, colon)).empty()) return std::nullopt;
    const BuiltMachine layered = compile(with);
    return layered.machine ? measure(*layered.machine, text.substr(colon + 2)) : std::nullopt;
  }
  const auto open = text.find('(');
  if (open == std::string_view::npos || !text.ends_with(')')) return std::nullopt;
  const std::string_view name = text.substr(0, open);
  Arguments a;
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    std::string_view one = rest.substr(0, comma);
    while (one.starts_with(' ')) one.remove_prefix(1);
    a.push_back(one);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  if (name == "structure" && !a.empty()) return structure(m, a);
  if (name == "collective" && a.size() == 2) return m_collective(m, a);
  if (name == "broadcast" && a.size() == 1) return m_broadcast(m, a);
  if (name == "barrier_margin" && a.empty()) return m_barrier_margin(m, a);
  if (name == "hot_spot" && a.size() == 2) return m_hot_spot(m, a);
  const auto op = a.empty() ? std::nullopt : op_by_name(a[0]);
  if (!op) return std::nullopt;
  if (a.size() == 2) {
    if (name == "endpoint") return m_endpoint(m, *op, a);
    if (name == "per_hop") return m_per_hop(m, *op, a);
    if (name == "half_peak") return m_half_peak(m, *op, a);
    if (name == "spread") return m_spread(m, *op, a);
  }
  if (a.size() == 3) {
    if (name == "latency") return m_latency(m, *op, a);
    if (name == "latency_beyond") return m_latency_beyond(m, *op, a);
    if (name == "completion") return m_completion(m, *op, a);
    if (name == "asymptote") return m_asymptote(m, *op, a);
    if (name == "pingpong") return m_pingpong(m, *op, a);
    if (name == "jump") return m_jump(m, *op, a);
    if (name == "ratio") return m_ratio(m, *op, a);
    if (name == "difference") return m_difference(m, *op, a);
    if (name == "rate_ratio") return m_rate_ratio(m, *op, a);
    if (name == "target_rate") return m_target_rate(m, *op, a);
  }
  if (a.size() == 3 || a.size() == 4) {
    if (name == "bandwidth") return m_stream(m, *op, a, false, false);
    if (name == "bidirectional") return m_stream(m, *op, a, true, false);
    if (name == "rate") return m_stream(m, *op, a, false, true);
  }
  return std::nullopt;
}

}  // namespace orrery::model
