// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "bench/osu/model.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bench {

namespace model = orrery::model;
using orrery::Picos;

namespace {

[[noreturn]] void refuse(int rank, const std::string& why) {
  if (rank == 0) std::fprintf(stderr, "--model: %s\n", why.c_str());
  PMI_Finalize();
  std::exit(2);
}

// A network of one's own.
class Network {
 public:
  explicit Network(const model::Pricing& pricing) {
    const std::size_t bytes = model::LinkState::bytes_needed(pricing, model::LinkState::Kind::exact);
    memory_.resize(bytes + 64);
    auto* const base =
        reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory_.data()) + 63) / 64 * 64);
    state_ = model::LinkState::create({base, bytes}, pricing, model::LinkState::Kind::exact).value();
  }
  model::LinkState* state() { return &state_; }

 private:
  std::vector<std::byte> memory_;
  model::LinkState state_;
};

}  // namespace

Model::Model(int rank, int size) {
  const char* const name = std::getenv("ORRERY_MACHINE");
  if (name == nullptr || *name == 0)
    refuse(rank, "there is no machine: expected orrery run --machine NAME, or ORRERY_MACHINE");
  auto built = model::build_machine(name);
  if (!built.machine) refuse(rank, built.error);
  machine_ = std::move(built.machine);
  // As the clock does (docs/timing.md): where no launcher placed the PEs, PE n is on node n.
  const bool placed = std::getenv("ORRERY_JOB_FD") != nullptr;
  for (int pe = 0; pe < size; ++pe) {
    int nid = pe;
    if (placed && PMI_Get_nid(pe, &nid) != PMI_SUCCESS) refuse(rank, "PMI_Get_nid failed");
    if (nid < 0 || static_cast<std::uint32_t>(nid) >= machine_->pricing.nodes)
      refuse(rank, "PE " + std::to_string(pe) + " is on node " + std::to_string(nid) +
                       ": the machine has nodes 0.." + std::to_string(machine_->pricing.nodes - 1));
    nodes_.push_back(static_cast<model::NodeId>(nid));
  }
}

Model::~Model() = default;

template <typename Point>
double Model::mean_us(model::Op op, Flow flow, std::uint64_t bytes, Point point) const {
  double sum = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const model::Quote q = model::quote(
        machine_->pricing,
        {.op = op, .src = node(flow.first), .dst = node(flow.second), .bytes = bytes, .seed = seed}, nullptr);
    sum += point(q).micros();
  }
  return sum / kSeeds;
}

double Model::data_us(model::Op op, Flow flow, std::uint64_t bytes) const {
  return mean_us(op, flow, bytes, [](const model::Quote& q) { return q.data_at; });
}
double Model::remote_event_us(model::Op op, Flow flow, std::uint64_t bytes) const {
  return mean_us(op, flow, bytes,
                 [](const model::Quote& q) { return std::max(q.remote_event_at, q.data_at); });
}
double Model::local_event_us(model::Op op, Flow flow, std::uint64_t bytes) const {
  return mean_us(op, flow, bytes,
                 [](const model::Quote& q) { return std::max(q.local_event_at, q.data_at); });
}

double Model::window_ns(model::Op op, const std::vector<Flow>& flows, std::uint64_t bytes, int count) const {
  constexpr int kRounds = 12, kFirst = 4;  // the first rounds fill the network
  Network network(machine_->pricing);
  struct Poster {
    Picos next;  // its next operation, or the end of its round
    Picos last;  // event of this round
    int posted = 0, rounds = 0;
    Picos from, to;  // of the rounds that count
  };
  std::vector<Poster> posters(flows.size());
  std::uint64_t seed = 0;
  for (;;) {
    const auto at = std::min_element(posters.begin(), posters.end(),
                                     [](const Poster& a, const Poster& b) { return a.next < b.next; });
    Poster& poster = *at;
    if (poster.rounds >= kRounds) break;
    const Flow& flow = flows[static_cast<std::size_t>(at - posters.begin())];
    const model::Quote q = model::quote(machine_->pricing,
                                        {.op = op,
                                         .src = node(flow.first),
                                         .dst = node(flow.second),
                                         .bytes = bytes,
                                         .now = poster.next,
                                         .seed = ++seed},
                                        network.state());
    poster.next += q.cpu_busy;
    poster.last = std::max({poster.last, q.local_event_at, q.data_at});
    if (++poster.posted < count) continue;
    poster.posted = 0;
    poster.next = std::max(poster.next, poster.last);
    if (++poster.rounds == kFirst) poster.from = poster.next;
    poster.to = poster.next;
  }
  double sum = 0;
  for (const Poster& poster : posters)
    sum += (poster.to - poster.from).nanos() / static_cast<double>(poster.rounds - kFirst);
  return sum / static_cast<double>(posters.size());
}

double Model::dissemination_us(int pes) const {
  // Each PE is told by the one `step` before it: it goes on when that has arrived and its own put is gone.
  std::vector<Picos> at(static_cast<std::size_t>(pes));
  for (int step = 1; step < pes; step *= 2) {
    std::vector<Picos> next(at.size());
    for (int pe = 0; pe < pes; ++pe) {
      const auto to = static_cast<std::size_t>((pe + step) % pes), from = static_cast<std::size_t>(pe);
      const model::Quote q = model::quote(machine_->pricing,
                                          {.op = model::Op::fma_put,
                                           .src = nodes_[from],
                                           .dst = nodes_[to],
                                           .bytes = 8,
                                           .now = at[from],
                                           .seed = static_cast<std::uint64_t>(pe)},
                                          nullptr);
      next[to] = std::max(next[to], q.data_at);
      next[from] = std::max(next[from], at[from] + q.cpu_busy);
    }
    at = next;
  }
  return std::max_element(at.begin(), at.end())->micros();
}

double Model::collective_us(model::Collective collective, int pes, std::uint64_t bytes) const {
  return model::quote_collective(*machine_, collective, static_cast<std::uint32_t>(pes), bytes).time.micros();
}

}  // namespace bench
