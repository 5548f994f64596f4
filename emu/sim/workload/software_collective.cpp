// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/workload/software_collective.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace orrery::sim {

namespace {

using Kind = SoftwareCollective::Kind;

// Steps of a binomial tree or a dissemination over n nodes.
std::uint32_t doublings(Node n) { return static_cast<std::uint32_t>(std::bit_width(n - 1)); }

struct Name {
  const char* name;
  Kind kind;
};
constexpr Name kNames[] = {
    {"broadcast", Kind::broadcast}, {"barrier", Kind::barrier}, {"allreduce", Kind::allreduce}};

}  // namespace

SoftwareCollective::SoftwareCollective(Node nodes, const Options& options)
    : nodes_(nodes),
      options_(options),
      steps_(options.kind == Kind::allreduce ? doublings(std::bit_floor(nodes)) + 2 : doublings(nodes)),
      packets_(static_cast<std::uint32_t>((options.bytes + options.payload_max - 1) / options.payload_max)),
      states_(nodes),
      arrived_(std::size_t{nodes} * 2 * steps_, 0) {}

SoftwareCollective::Step SoftwareCollective::step_of(Node node, std::uint32_t step) const {
  Step out;
  switch (options_.kind) {
    case Kind::broadcast: {
      const Node far = Node{1} << step;
      if (node < far && node + far < nodes_) out.to = node + far;
      if (node >= far && node < 2 * far) out.from = node - far;
      break;
    }
    case Kind::barrier: {
      const Node far = Node{1} << step;
      out.to = (node + far) % nodes_;
      out.from = (node + nodes_ - far) % nodes_;
      break;
    }
    case Kind::allreduce: {
      const Node below = std::bit_floor(nodes_), past = nodes_ - below;
      const bool first = step == 0, last = step + 1 == steps_;
      if (!first && !last) {
        if (node < below) out.to = out.from = node ^ Node { 1 } << (step - 1);
      } else if (node >= below) {
        (first ? out.to : out.from) = node - below;
      } else if (node < past) {
        (first ? out.from : out.to) = node + below;
      }
      break;
    }
  }
  return out;
}

Next SoftwareCollective::next(Node node, std::uint32_t, Tick now, Random&, Send& out) {
  State& me = states_[node];
  while (me.exchange < options_.repeat) {
    const Step step = step_of(node, me.step);
    if (step.to != kNobody && me.sent < packets_) {
      out.dst = step.to;
      out.payload = static_cast<std::uint16_t>(std::min<std::uint64_t>(
          options_.payload_max, options_.bytes - std::uint64_t{me.sent} * options_.payload_max));
      out.flags =
          static_cast<std::uint8_t>((me.sent != 0 ? kFollows : 0) | (me.sent + 1 != packets_ ? kMore : 0));
      out.tag = static_cast<std::uint32_t>(me.exchange % 2) * steps_ + me.step;
      out.created = now;
      ++me.sent;
      return Next::send;
    }
    if (step.from != kNobody) {
      std::uint32_t& come = arrived(node, me.exchange, me.step);
      if (come < packets_) return Next::idle;
      come = 0;
    }
    me.sent = 0;
    if (++me.step == steps_) {
      me.step = 0;
      ++me.exchange;
    }
  }
  return Next::idle;
}

bool SoftwareCollective::delivered(Node node, const Packet& packet, Tick, bool) {
  ++arrived(node, packet.tag / steps_, packet.tag % steps_);
  return true;
}

std::uint64_t SoftwareCollective::expected_packets() const {
  const Node below = std::bit_floor(nodes_);
  const std::uint64_t messages = options_.kind == Kind::broadcast ? nodes_ - 1
                                 : options_.kind == Kind::barrier
                                     ? std::uint64_t{nodes_} * steps_
                                     : std::uint64_t{below} * (steps_ - 2) + 2 * (nodes_ - below);
  return messages * packets_ * options_.repeat;
}

Node SoftwareCollective::complete() const {
  return static_cast<Node>(std::count_if(states_.begin(), states_.end(), [this](const State& state) {
    return state.exchange == options_.repeat;
  }));
}

std::string software_collective_names() {
  std::string names;
  for (const Name& known : kNames) names += (names.empty() ? "" : ", ") + std::string(known.name);
  return names;
}

bool is_software_collective(const std::string& name) {
  return std::any_of(std::begin(kNames), std::end(kNames), [&](const Name& k) { return name == k.name; });
}

std::uint64_t software_collective_bytes(const std::string& name, std::uint64_t largest) {
  return name == "broadcast" ? largest : 8;
}

Refusal make_software_collective(const std::string& name, Node nodes,
                                 const SoftwareCollective::Options& options, std::unique_ptr<Workload>* out) {
  SoftwareCollective::Options chosen = options;
  for (const Name& known : kNames)
    if (name == known.name) chosen.kind = known.kind;
  if (chosen.kind == Kind::broadcast && chosen.repeat != 1)
    return {fmt::format("{} broadcasts: expected 1, the root of a second one would wait for no node",
                        chosen.repeat)};
  *out = std::make_unique<SoftwareCollective>(nodes, chosen);
  return {};
}

}  // namespace orrery::sim
