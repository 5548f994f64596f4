// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The Quadrics network of ASCI Q, circuit by circuit.
//
// Source: Petrini et al., "Scalable Collective Communication on the ASCI Q Machine" (2003). A packet's
// header climbs a 4-ary tree by any up link (the least loaded), then has one way down; it takes one of
// two virtual channels of each link and the path stays its own until the destination's acknowledgment
// has come back. What waits for a link is served high priority first, oldest first; after kAging a low
// one counts as high. A destination takes one packet at a time. A multicast climbs to the leftmost root
// that covers its set, is served there one at a time, and is over when the combined acknowledgment of
// all is back.
//
// FITTED: upper_level_skew to the two broadcast bandwidths (64 and 1,024 nodes); elan_start to the
// hardware barrier of 64 nodes; elan_message to the software barrier of 64 nodes; host_level to the
// allreduce of 1,024 nodes. The other of each pair is predicted.
//
// Link errors: routing and data are protected by a CRC, and "packet error detection and recovery" is the
// network's. A packet that a bit error hits anywhere on its way is answered by a network error when all of it
// is there, and its source sends it again over a new circuit; of a multicast the worst acknowledgment wins,
// so that all of it is sent again. Errors cost time, never packets. Failed links: a header that climbs takes
// only links from which its one way down is whole.
//
// LIMITATIONS: two circuits on a link take turns packet by packet; a multicast's branches do not
// compete with other circuits and take no failed links into account; the bits of a packet's header and of its
// acknowledgment do not fail; one segment of the machine.
// Single-threaded; one object is one run.
#pragma once

#include "emu/model/fat_tree.hpp"
#include "emu/sim/engine/types.hpp"
#include "emu/sim/scene/result.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace orrery::sim {

// Times in nanoseconds.
struct QuadricsConfig {
  std::uint32_t levels = 5;
  double bytes_per_ns = 0.4;   // "400 MB/s on each link direction"
  double elite = 35;           // flow-through latency of a switch
  double elan = 35;            // the same of a node that a circuit ends in: taken for a switch's
  double node_cable = 0;       // between a node and its switch
  std::uint32_t packet = 384;  // "the largest packet size is only 384 bytes"
  std::uint32_t vcs = 2;
  double aging = 20000;  // a wait at one link after which a low circuit counts as high; no paper prints it
  double upper_level_skew = 575;  // FITTED: cables and late acknowledgments, per level above the third
  bool one_far_boundary = false;  // a circuit meets it at the fourth boundary only: a machine file's cables
  double elan_start = 5300;       // FITTED: starting a test-and-set and waking up after it
  double elan_message = 600;      // FITTED: the thread processor receives or sends one message
  double host_level = 30000;      // FITTED: the host adds up its children's vectors, one level
  double bit_error_rate = 0;      // of each bit of data on each link, 0 to 1e-4; errors are independent
  std::uint64_t seed = 1;
};

class Quadrics {
 public:
  // REQUIRES: levels 1..6.
  explicit Quadrics(const QuadricsConfig& config);

  std::uint32_t nodes() const { return tree_.nodes(); }

  // Takes a link out of service for all runs from here on. Outcomes: refused (one line says why) for a link
  // that is not there, a node's own, and one without which some pair of nodes has no way left.
  Refusal fail_link(model::LinkId link);
  // The same for a link up and the one that leads back down.
  Refusal fail_both_ways(model::LinkId up);
  bool has_failed(model::LinkId link) const { return links_[link].failed; }

  struct HotSpot {
    double mb_per_s = 0;  // received by node 0
    std::uint64_t packets = 0;
    std::uint64_t circuits_waiting = 0;
  };
  // Nodes 1..senders all send to node 0 for `ns`; a sender has one packet under way.
  HotSpot hot_spot(std::uint32_t nodes, double ns);

  struct Stream {
    double mean_latency = 0;  // header sent to tail received
    double accepted = 0;      // bytes per node and ns
    std::uint64_t packets = 0;
    std::uint64_t retries = 0;        // packets sent again because of bit errors
    std::uint64_t failed_passed = 0;  // links out of service that a circuit took: none
  };
  // Every node sends packets to random others; `load` of the link rate, exponential gaps.
  Stream uniform(double load, double ns);

  // Bandwidth at the source of a hardware broadcast of `packets` packets to `nodes` nodes, MB/s.
  double broadcast_mb_per_s(std::uint32_t nodes, std::uint32_t packets);
  // Time of a hardware barrier of the first `nodes` nodes that arrive at `arrivals` (one per node, or
  // empty: together): test-and-set multicasts with doubling back-off until all are there.
  struct Barrier {
    double ns = 0;
    std::uint32_t attempts = 0;
  };
  Barrier hardware_barrier(std::uint32_t nodes, const std::vector<double>& arrivals = {});
  // A 4-ary tree of Elan messages, up and down.
  double software_barrier(std::uint32_t nodes);
  // Collection up a 4-ary tree with host arithmetic, hardware broadcast down.
  double allreduce(std::uint32_t nodes);

  // Completion times of multicasts issued at `starts` by nodes of their own: served one after the other.
  std::vector<double> multicasts(const std::vector<double>& starts, std::uint32_t nodes, std::uint32_t bytes);

  // Header to the farthest of `nodes` nodes and combined acknowledgment back.
  double round_trip(std::uint32_t nodes) const;
  // Levels that a tree over the first `nodes` nodes spans.
  static std::uint32_t levels_of(std::uint32_t nodes);

  // For a driver with a workload of its own (quadrics_run.cpp): begin(), then send() and run() in turn.
  struct Totals {
    std::array<std::uint64_t, 2> links_taken{};  // by circuits, as the first or a further one of the link
    double data_ns = 0;                          // that links carried data, summed over links
    std::uint64_t retries = 0;
  };
  // Called at `ns`: the tail of `src`'s packet is at its destination, or (`released`) its circuit is gone.
  using Done = std::function<void(Node src, double ns, bool released)>;
  // Forgets all runs before; one circuit for each node.
  void begin();
  // Opens a circuit at `at`. REQUIRES: begin(); the circuit that `src` had before is released; src != dst.
  void send(Node src, Node dst, std::uint32_t bytes, double at, bool high = false);
  // All that happens before `until`.
  void run(double until, const Done& done);
  // When something happens next; infinite if nothing will.
  double next_at() const;
  const Totals& totals() const { return totals_; }
  const model::FatTree& tree() const { return tree_; }
  const QuadricsConfig& config() const { return config_; }
  // Time that a link carried data, ns; circuits that hold it now.
  double data_ns(model::LinkId link) const { return links_[link].data_ns; }
  std::uint32_t held(model::LinkId link) const { return links_[link].busy; }
  // Circuits that a link has room for.
  std::uint32_t room(model::LinkId link) const {
    return tree_.is_up(link) || tree_.boundary_of(link) != 0 ? config_.vcs : 1;
  }

 private:
  struct Circuit {
    Node src = 0, dst = 0;
    double created = 0, waiting_since = 0;
    std::uint32_t bytes = 0;
    bool high = false;
    bool damaged = false;    // by a bit error: to be sent again
    std::uint32_t step = 0;  // links taken
    std::vector<std::uint32_t> links;
  };
  struct Link {
    std::uint32_t busy = 0;  // VCs taken
    double data_free = 0;
    double data_ns = 0;
    bool failed = false;
    std::vector<std::uint32_t> waiting;  // circuits
  };
  enum class What : std::uint8_t { start, header, release, done };
  struct Occurrence {
    double at;
    std::uint64_t order;  // ties by creation
    What what;
    std::uint32_t circuit, link;
    bool operator>(const Occurrence& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  double hop(std::uint32_t link) const;
  void reset();
  std::uint32_t open(Node src, Node dst, std::uint32_t bytes, double at);
  void post(double at, What what, std::uint32_t circuit, std::uint32_t link = 0);
  std::uint32_t next_link(const Circuit& circuit) const;
  bool leads_to(std::uint32_t up, Node dst, std::uint32_t top) const;
  bool down_is_whole(std::uint32_t level, std::uint32_t index, Node dst) const;
  bool hit(std::uint64_t bits);
  void advance(std::uint32_t circuit, double now);
  void take(std::uint32_t circuit, std::uint32_t link, double now);
  QuadricsConfig config_;
  model::FatTree tree_;
  Random random_;
  std::vector<Link> links_;
  std::vector<Circuit> circuits_;
  std::priority_queue<Occurrence, std::vector<Occurrence>, std::greater<>> agenda_;
  std::uint64_t order_ = 0, failed_passed_ = 0;
  Totals totals_;
  Refusal take_out(model::LinkId link, model::LinkId back);
  bool any_failed_ = false;
};

}  // namespace orrery::sim
