// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Routes around failed links: what the management software of the machines does when it computes new
// routing tables after a link or a board is lost. First the topology's own routes are tried with
// different choices (parallel links, other copies, other bundle links); if every one of them needs a
// failed link, the shortest path that is left is searched breadth first. Off the hot path: allocates.
#pragma once

#include "emu/base/status.hpp"
#include "emu/model/dragonfly.hpp"
#include "emu/model/fat_tree.hpp"
#include "emu/model/route.hpp"
#include "emu/model/torus.hpp"

#include <vector>

namespace orrery::model {

// Failed links of one topology, by link id.
class FailedLinks {
 public:
  explicit FailedLinks(LinkId slots) : failed_(slots, false) {}
  void fail(LinkId link) { failed_[link] = true; }
  void repair(LinkId link) { failed_[link] = false; }
  bool contains(LinkId link) const { return failed_[link]; }
  bool touches(const Route& route) const;

 private:
  std::vector<bool> failed_;
};

struct Detour {
  Route route;
  bool quiesced = false;  // no route of the topology's own was left: new tables
};

// `tries` seeds are derived from `seed`. Outcomes: a route free of failed links; Errc::unreachable when
// none is left (or only one longer than Route::kCapacity).
Result<Detour> route_around(const Torus& torus, const FailedLinks& failed, NodeId src, NodeId dst,
                            const TorusChoice& choice, int tries = 16);
Result<Detour> route_around(const Dragonfly& dragonfly, const FailedLinks& failed, NodeId src, NodeId dst,
                            std::uint64_t seed, int tries = 16);
Result<Detour> route_around(const FatTree& tree, const FailedLinks& failed, NodeId src, NodeId dst,
                            std::uint64_t seed, int tries = 16);

}  // namespace orrery::model
