// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Blue Gene/L with failed nodes: hint bits that lead packets round them.
//
// Source: Adiga et al., "Blue Gene/L torus interconnection network" (2005), "Torus network": routers know
// nothing of dead nodes; software sets the hint bits so that they are avoided, and all others stay connected
// with up to three failed nodes that are not colinear. Which of the choices below software takes first the
// paper does not say.
//
// LIMITATIONS: a pair of nodes for which no hint bits do (a failed node at a corner of every box between
// them) is led by way of a third node, whose software sends the packet on: an assumption. Such a packet is
// two packets to the network; its payload and latency count once, at its end.
#pragma once

#include "emu/sim/bgl/bgl_run.hpp"
#include "emu/sim/failure/without_nodes.hpp"
#include "emu/sim/scene/simulate.hpp"
#include "emu/sim/tile/torus_grid.hpp"

#include <memory>
#include <string>
#include <vector>

namespace orrery::sim {

// The ways of a torus with failed nodes. Immutable after make(): any thread may ask.
class FailedNodes {
 public:
  static constexpr std::size_t kMost = 3;
  struct Way {
    Node via = 0;            // where the hint bits lead: the destination, or a node that sends it on
    std::uint8_t hints = 0;  // a direction for each dimension that differs
    bool fixed = false;      // by the escape network's order only; else any order of the hinted directions
  };
  FailedNodes() = default;
  // Outcomes: the ways; a refusal for more than three nodes, two of them on one line of the torus, an open or
  // short (less than 3 nodes) side. REQUIRES: validate_bgl(config) does not refuse.
  static Refusal make(const BglConfig& config, const std::vector<Node>& nodes, FailedNodes* out);
  // The same from words: "2" (so many, drawn by the configuration's seed) or coordinates, "1.0.3,2.2.2".
  static Refusal parse(const std::string& words, const BglConfig& config, FailedNodes* out);

  bool failed(Node node) const;
  const std::vector<Node>& nodes() const { return nodes_; }
  // The first that avoids all failed nodes of: a shortest way in any order (half way round by the bits of
  // `coin`), the shortest other one in any order, the shortest one in the escape network's order, the same to
  // a node from which there is one to the destination. REQUIRES: two different nodes, neither failed.
  Way way(Node from, Node to, std::uint32_t coin) const;
  // Every link to and from a failed node.
  std::vector<BglFault> links() const;

 private:
  bool on_box(TorusGrid::Packed from, TorusGrid::Packed to, std::uint8_t hints) const;
  bool on_path(TorusGrid::Packed from, TorusGrid::Packed to, std::uint8_t hints) const;
  bool within(TorusGrid::Packed from, TorusGrid::Packed to, std::uint8_t hints, int dim,
              TorusGrid::Packed at) const;
  bool direct(Node from, Node to, std::uint32_t coin, Way* out) const;
  TorusGrid grid_;
  EscapeOrder order_ = EscapeOrder::dimension;
  bool fixed_ = false;  // all packets go by the escape network's order
  std::vector<Node> nodes_;
  std::vector<TorusGrid::Packed> at_;
};

// A workload on a machine with failed nodes, whose packets between the others go by their ways. Threads: as
// Workload. The inner workload may not look at tags or sources.
class AroundFailedNodes final : public WithoutNodes {
 public:
  // `redraw`: as WithoutNodes.
  AroundFailedNodes(std::unique_ptr<Workload> inner, const FailedNodes& failed, Node nodes, bool redraw);
  Next next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) override;
  bool delivered(Node node, const Packet& packet, Tick now, bool copy) override;

 private:
  // A packet that this node's software sends on. In order of these fields: arrivals of one tick have none.
  struct Relayed {
    Tick created;
    Node to;
    std::uint16_t payload;
    friend auto operator<=>(const Relayed&, const Relayed&) = default;
  };
  Next lead(Node node, Random& random, Send& out) const;
  const FailedNodes failed_;
  std::vector<std::vector<Relayed>> relayed_;  // by node, latest first
};

// REQUIRES: check_losses() (asked_losses.hpp) does not refuse.
// What `spec.failed_nodes` says, if anything: `workload` goes round them, their links are out of service.
// A refusal names what is accepted.
Refusal lead_round_failed_nodes(const RunSpec& spec, const BglConfig& config,
                                std::unique_ptr<Workload>* workload, BglExtras* extras);

}  // namespace orrery::sim
