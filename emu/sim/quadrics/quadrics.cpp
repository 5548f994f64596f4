// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/quadrics/quadrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace orrery::sim {

Quadrics::Quadrics(const QuadricsConfig& config)
    : config_(config), tree_(model::FatTree::make(config.levels).value()), random_(config.seed) {
  reset();
}

void Quadrics::reset() {
  std::vector<Link> fresh(tree_.link_slots());
  for (std::size_t i = 0; i < links_.size(); ++i) fresh[i].failed = links_[i].failed;
  links_ = std::move(fresh);
  circuits_.clear();
  failed_passed_ = 0;
  totals_ = {};
  agenda_ = {};
  order_ = 0;
  random_ = Random(config_.seed);
}

std::uint32_t Quadrics::levels_of(std::uint32_t nodes) {
  std::uint32_t levels = 1;
  for (std::uint32_t span = 4; span < nodes; span *= 4) ++levels;
  return levels;
}

double Quadrics::round_trip(std::uint32_t nodes) const {
  const std::uint32_t n = levels_of(nodes);
  return 2 * (2 * n - 1) * config_.elite + (n > 3 ? (n - 3) * config_.upper_level_skew : 0);
}

// Time to cross a link and the switch behind it; half of a level's skew lies on its way up and back each.
double Quadrics::hop(std::uint32_t link) const {
  if (tree_.boundary_of(link) == 0)
    return config_.node_cable + (tree_.is_up(link) ? config_.elite : config_.elan);
  const std::uint32_t boundary = tree_.boundary_of(link);
  const bool far = boundary == 3 || (boundary > 3 && !config_.one_far_boundary);
  return config_.elite + (far ? config_.upper_level_skew / 4 : 0);
}

void Quadrics::post(double at, What what, std::uint32_t circuit, std::uint32_t link) {
  agenda_.push({at, order_++, what, circuit, link});
}

std::uint32_t Quadrics::open(Node src, Node dst, std::uint32_t bytes, double at) {
  Circuit circuit;
  circuit.src = src;
  circuit.dst = dst;
  circuit.bytes = bytes;
  circuit.created = at;
  circuits_.push_back(std::move(circuit));
  const auto index = static_cast<std::uint32_t>(circuits_.size() - 1);
  post(at, What::start, index);
  return index;
}

// Whether the one way down from a switch to `dst` is in service.
bool Quadrics::down_is_whole(std::uint32_t level, std::uint32_t index, Node dst) const {
  model::Route way;
  tree_.descend(level, index, dst, &way);
  return std::none_of(way.begin(), way.end(), [&](std::uint32_t link) { return links_[link].failed; });
}

// Whether a circuit that takes the link `up` can go on to a common ancestor at `top`, and down from there.
bool Quadrics::leads_to(std::uint32_t up, Node dst, std::uint32_t top) const {
  if (links_[up].failed) return false;
  const model::RouterId at = tree_.ends(up).to;
  const std::uint32_t level = at / tree_.switches_per_level(), index = at % tree_.switches_per_level();
  if (level == top) return down_is_whole(level, index, dst);
  for (std::uint32_t i = 0; i < model::FatTree::kArity; ++i)
    if (leads_to(tree_.up_link(level + 1, model::FatTree::kArity * index + i), dst, top)) return true;
  return false;
}

Refusal Quadrics::fail_link(model::LinkId link) { return take_out(link, link); }

Refusal Quadrics::fail_both_ways(model::LinkId up) {
  if (!tree_.has_link(up) || !tree_.is_up(up))
    return {
        fmt::format("link {}: expected one that leads up, a number below {}", up, tree_.link_slots() / 2)};
  const std::uint32_t boundary = tree_.boundary_of(up);
  if (boundary == 0) return take_out(up, up);  // refused
  const model::LinkEnds ends = tree_.ends(up);
  std::uint32_t position = model::FatTree::kArity * (ends.to % tree_.switches_per_level());
  while (tree_.ends(tree_.down_link(boundary, position)).to != ends.from) ++position;
  return take_out(up, tree_.down_link(boundary, position));
}

// REQUIRES: `back` is `link`, or leads the other way between the same switches.
Refusal Quadrics::take_out(model::LinkId link, model::LinkId back) {
  if (!tree_.has_link(link))
    return {fmt::format("link {}: expected a number below {}", link, tree_.link_slots())};
  const std::uint32_t boundary = tree_.boundary_of(link);
  if (boundary == 0) return {fmt::format("link {}: a node's own, without which it is cut off", link)};
  const bool was = links_[link].failed, back_was = links_[back].failed;
  links_[link].failed = links_[back].failed = true;
  // Only nodes below the lower of its two switches can miss it, going up or being led down to.
  const model::LinkEnds ends = tree_.ends(link);
  const std::uint32_t lower = (tree_.is_up(link) ? ends.from : ends.to) % tree_.switches_per_level();
  const Node below = 1u << (2 * boundary), first = lower / (below / model::FatTree::kArity) * below;
  const auto reaches = [&](Node src, Node dst) {
    return src == dst || leads_to(tree_.up_link(0, src), dst, model::FatTree::nca_level(src, dst));
  };
  // All nodes of one switch share their ways from there: one of each stands for them.
  for (Node inside = first; inside < first + below; inside += model::FatTree::kArity)
    for (Node node = 0; node < nodes(); node += model::FatTree::kArity)
      for (const auto& [src, dst] : {std::pair(inside, node), std::pair(node, inside)}) {
        if (reaches(src, dst)) continue;
        links_[link].failed = was;
        links_[back].failed = back_was;
        return {fmt::format("link {}: without it node {} could not reach node {}", link, src, dst)};
      }
  any_failed_ = true;
  return {};
}

// Whether a bit error is among so many bits.
bool Quadrics::hit(std::uint64_t bits) {
  return config_.bit_error_rate > 0 && random_.chance(as_chance(-std::expm1(
                                           std::log1p(-config_.bit_error_rate) * static_cast<double>(bits))));
}

// Up: of the four, a link with a free VC, the least taken; of equal ones that of the node's own digit, so
// that no two nodes want the same one on a quiet tree. Down: the one way.
std::uint32_t Quadrics::next_link(const Circuit& circuit) const {
  const std::uint32_t top = model::FatTree::nca_level(circuit.src, circuit.dst);
  const std::uint32_t step = circuit.step;
  if (step == 0) return tree_.up_link(0, circuit.src);
  const model::LinkEnds last = tree_.ends(circuit.links.back());
  const std::uint32_t level = last.to / tree_.switches_per_level(),
                      index = last.to % tree_.switches_per_level();
  if (step <= top) {
    std::uint32_t best = 0, least = ~0u;
    const std::uint32_t own = circuit.src >> (2 * level);
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t link = tree_.up_link(step, 4 * index + ((own + i) & 3));
      if (any_failed_ && !leads_to(link, circuit.dst, top)) continue;
      const std::uint32_t load = links_[link].busy + static_cast<std::uint32_t>(links_[link].waiting.size());
      if (load < least) least = load, best = link;
    }
    return best;
  }
  // Down from `level` by the digit of the destination.
  const std::uint32_t digit = circuit.dst >> (2 * level) & 3;
  return tree_.down_link(level, 4 * index + digit);
}

void Quadrics::take(std::uint32_t index, std::uint32_t link, double now) {
  Circuit& circuit = circuits_[index];
  ++totals_.links_taken[links_[link].busy == 0 ? 0 : 1];
  ++links_[link].busy;
  failed_passed_ += links_[link].failed;
  circuit.links.push_back(link);
  ++circuit.step;
  post(now + hop(link), What::header, index);
}

void Quadrics::advance(std::uint32_t index, double now) {
  Circuit& circuit = circuits_[index];
  const std::uint32_t whole = 2 * (model::FatTree::nca_level(circuit.src, circuit.dst) + 1);
  if (circuit.step == whole) {
    // The circuit stands. Data goes when all its links are free of other data; the acknowledgment of
    // the header overlaps it; the circuit is released when both are through.
    double start = now;
    for (const std::uint32_t link : circuit.links) start = std::max(start, links_[link].data_free);
    const double tail = start + circuit.bytes / config_.bytes_per_ns;
    const double carried = circuit.bytes / config_.bytes_per_ns;
    for (const std::uint32_t link : circuit.links) {
      links_[link].data_free = tail;
      links_[link].data_ns += carried;
      totals_.data_ns += carried;
    }
    double back = 0;
    for (const std::uint32_t link : circuit.links) back += hop(link);
    circuit.damaged = hit(std::uint64_t{8} * circuit.bytes * circuit.links.size());
    if (!circuit.damaged) post(tail, What::done, index);
    // Back to the source and the end-of-packet token out again; what is wrong with data shows at its end.
    post(circuit.damaged ? tail + back : std::max(tail, start + 2 * back), What::release, index);
    return;
  }
  const std::uint32_t link = next_link(circuit);
  if (links_[link].busy < room(link)) return take(index, link, now);
  circuit.waiting_since = now;
  links_[link].waiting.push_back(index);
}

double Quadrics::next_at() const {
  return agenda_.empty() ? std::numeric_limits<double>::infinity() : agenda_.top().at;
}

void Quadrics::begin() {
  reset();
  circuits_.resize(nodes());
}

void Quadrics::send(Node src, Node dst, std::uint32_t bytes, double at, bool high) {
  Circuit& circuit = circuits_[src];
  circuit.src = src;
  circuit.dst = dst;
  circuit.bytes = bytes;
  circuit.high = high;
  circuit.step = 0;
  circuit.created = at;
  post(at, What::start, src);
}

void Quadrics::run(double until, const Done& done) {
  while (!agenda_.empty() && agenda_.top().at < until) {
    const Occurrence now = agenda_.top();
    agenda_.pop();
    switch (now.what) {
      case What::start:
      case What::header:
        advance(now.circuit, now.at);
        break;
      case What::done:
        done(now.circuit, now.at, false);
        break;
      case What::release: {
        const std::vector<std::uint32_t> held = std::move(circuits_[now.circuit].links);
        circuits_[now.circuit].links.clear();
        for (const std::uint32_t link : held) {
          --links_[link].busy;
          auto& waiting = links_[link].waiting;
          if (waiting.empty()) continue;
          // High priority first, aged ones among them; then the oldest.
          const auto better = [&](std::uint32_t a, std::uint32_t b) {
            const Circuit &x = circuits_[a], &y = circuits_[b];
            const bool xh = x.high || now.at - x.waiting_since > config_.aging;
            const bool yh = y.high || now.at - y.waiting_since > config_.aging;
            return xh != yh ? xh : x.waiting_since < y.waiting_since;
          };
          const auto next = std::min_element(waiting.begin(), waiting.end(), better);
          const std::uint32_t chosen = *next;
          waiting.erase(next);
          take(chosen, link, now.at);
        }
        if (Circuit& circuit = circuits_[now.circuit]; circuit.damaged) {
          circuit.damaged = false;
          circuit.step = 0;
          ++totals_.retries;
          post(now.at, What::start, now.circuit);
          break;
        }
        done(now.circuit, now.at, true);
        break;
      }
    }
  }
}

Quadrics::HotSpot Quadrics::hot_spot(std::uint32_t nodes, double ns) {
  reset();
  for (Node node = 1; node < nodes; ++node) open(node, 0, config_.packet, random_.unit() * 1000);
  HotSpot result;
  const double from = ns / 4;
  run(ns, [&](std::uint32_t index, double now, bool released) {
    if (!released) {
      if (now >= from) ++result.packets;
      return;
    }
    // The sender's next packet takes the record of the last.
    Circuit& circuit = circuits_[index];
    circuit.step = 0;
    circuit.created = now;
    post(now, What::start, index);
  });
  result.mb_per_s = static_cast<double>(result.packets) * config_.packet / (ns - from) * 1000;
  for (const Link& link : links_) result.circuits_waiting += link.waiting.size();
  return result;
}

Quadrics::Stream Quadrics::uniform(double load, double ns) {
  reset();
  const double gap = config_.packet / config_.bytes_per_ns / load;
  std::vector<double> next(nodes());
  std::vector<std::uint32_t> record(nodes());
  const auto other = [&](Node node) {
    const Node to = random_.below(nodes() - 1);
    return to >= node ? to + 1 : to;
  };
  for (Node node = 0; node < nodes(); ++node) {
    next[node] = -std::log(random_.unit()) * gap;
    record[node] = open(node, other(node), config_.packet, next[node]);
  }
  Stream result;
  double sum = 0;
  const double from = ns / 3;
  run(ns, [&](std::uint32_t index, double now, bool released) {
    Circuit& circuit = circuits_[index];
    if (!released) {
      if (now >= from) {
        ++result.packets;
        sum += now - circuit.created;
      }
      return;
    }
    next[circuit.src] += -std::log(random_.unit()) * gap;
    circuit.created = next[circuit.src];
    circuit.dst = other(circuit.src);
    circuit.step = 0;
    post(std::max(now, circuit.created), What::start, index);
  });
  result.mean_latency = result.packets ? sum / static_cast<double>(result.packets) : 0;
  result.accepted = static_cast<double>(result.packets) * config_.packet / (ns - from) / nodes();
  result.retries = totals_.retries;
  result.failed_passed = failed_passed_;
  return result;
}

std::vector<double> Quadrics::multicasts(const std::vector<double>& starts, std::uint32_t nodes,
                                         std::uint32_t bytes) {
  // One at a time at the root: the next leaves the root when the last one's circuits are cleared.
  std::vector<std::size_t> order(starts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return starts[a] < starts[b]; });
  std::vector<double> ends(starts.size());
  double root_free = 0;
  const std::uint32_t n = levels_of(nodes);
  const double climb = n * config_.elite;
  for (const std::size_t i : order) {
    const double at_root = std::max(starts[i] + climb, root_free);
    const double once = bytes / config_.bytes_per_ns + round_trip(nodes);
    ends[i] = at_root - climb + once;
    // A copy on every link of a tree over the nodes, any of which fails all.
    while (hit(std::uint64_t{8} * bytes * (nodes + nodes / 3))) {
      ends[i] += once;
      ++totals_.retries;
    }
    root_free = ends[i] - climb;
  }
  return ends;
}

double Quadrics::broadcast_mb_per_s(std::uint32_t nodes, std::uint32_t packets) {
  // The source sends the next packet when the combined acknowledgment of the last is back.
  double now = 0;
  for (std::uint32_t i = 0; i < packets; ++i) now = multicasts({now}, nodes, config_.packet).front();
  return static_cast<double>(packets) * config_.packet / now * 1000;
}

Quadrics::Barrier Quadrics::hardware_barrier(std::uint32_t nodes, const std::vector<double>& arrivals) {
  double last = 0;
  for (const double at : arrivals) last = std::max(last, at);
  // The master starts when it arrived itself (node 0).
  double now = (arrivals.empty() ? 0 : arrivals.front()) + config_.elan_start;
  double back_off = config_.elan_message;
  Barrier result;
  for (;;) {
    ++result.attempts;
    const double sees = now + round_trip(nodes) / 2;  // when the test reads the last node's word
    now = multicasts({now}, nodes, 0).front();
    if (sees >= last) break;
    now += back_off;
    back_off *= 2;
  }
  result.ns = multicasts({now}, nodes, 0).front();  // the end-of-packet token that wakes all nodes
  return result;
}

double Quadrics::software_barrier(std::uint32_t nodes) {
  // Level by level of the 4-ary tree: a parent's thread takes its children's messages one by one, and
  // sends them 'go' one by one. A message is a circuit of a few bytes.
  double total = 0;
  const std::uint32_t levels = levels_of(nodes);
  for (std::uint32_t level = 0; level < levels; ++level) {
    const double one_way = round_trip(1u << (2 * (level + 1))) / 2;
    total += 2 * (one_way + 4 * config_.elan_message);
  }
  return total;
}

double Quadrics::allreduce(std::uint32_t nodes) {
  double total = 0;
  const std::uint32_t levels = levels_of(nodes);
  for (std::uint32_t level = 0; level < levels; ++level)
    total += round_trip(1u << (2 * (level + 1))) / 2 + config_.host_level;
  return total + multicasts({0.0}, nodes, 8).front() + config_.elan_start;
}

}  // namespace orrery::sim
