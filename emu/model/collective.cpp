// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/collective.hpp"

#include "emu/model/quote.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::model {

namespace {

std::uint32_t ceil_log(std::uint32_t value, std::uint32_t radix) {
  std::uint32_t levels = 0;
  for (std::uint64_t reach = 1; reach < value; reach *= radix) ++levels;
  return levels;
}

// Mean quiet latency over a fixed sample of pairs among the first `participants` nodes; where there are more
// participants than nodes, among all nodes.
Picos mean_latency(const Pricing& p, Op op, std::uint32_t participants, std::uint64_t bytes) {
  const std::uint32_t nodes = std::min(participants, p.nodes);
  if (nodes < 2) return Picos{};
  constexpr int kPairs = 64;
  Choices pick(nodes);
  Picos sum;
  for (int i = 0; i < kPairs; ++i) {
    const NodeId src = pick.below(nodes);
    const NodeId dst = (src + 1 + pick.below(nodes - 1)) % nodes;
    sum += quote(p, {.op = op, .src = src, .dst = dst, .bytes = bytes, .seed = static_cast<std::uint64_t>(i)},
                 nullptr)
               .data_at;
  }
  return sum / kPairs;
}

}  // namespace

CollectiveQuote quote_collective(const Machine& machine, Collective collective, std::uint32_t nodes,
                                 std::uint64_t bytes) {
  const Description& d = machine.description;
  const Pricing& p = machine.pricing;
  const CollectiveDescription& c = d.collectives[static_cast<std::size_t>(collective)];
  const std::string key = fmt::format("collective.{}.", collective_name(collective));
  CollectiveQuote q;
  q.levels = ceil_log(nodes, static_cast<std::uint32_t>(d.value(key + "radix", 2)));
  if (nodes < 2) return q;
  const Picos once = stages_total(d, c.once);
  // A file may not make two wait for each other (compile()).
  const Picos waited = c.after ? quote_collective(machine, *c.after, nodes, 0).time : Picos{};
  if (c.by_operation) {
    q.time = mean_latency(p, c.op, nodes, bytes) * (q.levels * d.value(key + "passes", 1)) + once + waited;
    return q;
  }
  const std::int64_t from = d.value(key + "from_level", 0), levels = q.levels;
  const Picos base = stages_total(d, c.base), per_level = stages_total(d, c.per_level);
  q.time = levels >= from ? base + per_level * (levels - from) : base * levels / from;
  if (collective == Collective::broadcast) {
    q.rounds = static_cast<std::uint32_t>(
        std::max<std::uint64_t>((bytes + p.packet.payload - 1) / p.packet.payload, 1));
    const Picos host = p.ops[static_cast<std::size_t>(Op::bte_put)].host_lone(p.packet.payload);
    q.time = std::max(q.time, host) * q.rounds;
  }
  q.time += once + waited;
  return q;
}

Rate hot_spot_rate(const Machine& machine, std::uint32_t nodes) {
  const Pricing& p = machine.pricing;
  if (p.network != Network::fat_tree || nodes < 2) return Rate{};
  const PerByte host = p.ops[static_cast<std::size_t>(Op::bte_put)].host_lone;
  std::int64_t total = 0;
  for (NodeId src = 1; src < nodes; ++src) {
    const std::size_t cls = FatTree::nca_level(src, 0) + 1;
    total += std::max(host, p.path[1][cls][0])(p.packet.payload).count();
  }
  return Rate::from_bytes_per_second(static_cast<std::uint64_t>(
      static_cast<double>(p.packet.payload) * (nodes - 1) / static_cast<double>(total) * 1e12));
}

}  // namespace orrery::model
