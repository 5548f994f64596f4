// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/asymmetric_fence.hpp"
#include "tests/emu/nic/box.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace orrery::nic::box {

inline constexpr std::uint8_t kAdd = 0x15;  // IADD
inline constexpr std::uint8_t kAddDouble = 0x1d;

// A reduction tree over the nodes of a box: VCEs, leaves, and what each leaf was told.
class Tree {
 public:
  // As a process does when it attaches: records are bound to threads from now on.
  explicit Tree(World& world) : world_(world) { (void)asymmetric_fence::enrol(); }

  std::uint32_t modes = 0;           // of every VCE
  CompletionQueue* queue = nullptr;  // of the first VCE
  int results_per_leaf = 1;
  // Contributions that the fast path takes go by it; they ask for no exceptions.
  bool usual = false;
  int short_joins = 0;  // how many it took

  // A VCE of `node` below `parent` (-1: the root). Children are numbered as they are added.
  int vce(int node, int parent) {
    Vce added{.node = node, .parent = parent};
    added.index = world_[node].nic().collective().create(world_[node].port()).value();
    if (parent >= 0) added.child = add_child(parent, static_cast<int>(vces_.size()), true);
    vces_.push_back(std::move(added));
    return static_cast<int>(vces_.size()) - 1;
  }
  // Three levels over eight nodes, with more leaves (43) than one VCE has children.
  void grow_three_levels() {
    const int root = vce(0, -1);
    std::vector<int> middle;
    for (int i = 0; i < 3; ++i) middle.push_back(vce(1 + i, root));
    for (int i = 0; i < 6; ++i) {
      const int low = vce((4 + i) % 8, middle[static_cast<std::size_t>(i % 3)]);
      for (int k = 0; k < 7; ++k) leaf((i + k) % 8, low);
    }
    leaf(7, root);
  }
  // A leaf of `node` below a VCE.
  int leaf(int node, int parent) {
    return leaf_as(node, parent, add_child(parent, static_cast<int>(leaves_.size()), false));
  }
  // One that joins under a number of its choice.
  int leaf_as(int node, int parent, std::uint32_t child) {
    auto leaf = std::make_unique<Leaf>();
    leaf->node = node;
    leaf->edge = edge_to(parent, child, false);
    leaf->results.resize(static_cast<std::size_t>(results_per_leaf));
    leaf->key =
        world_[node]
            .nic()
            .register_region(world_[node].port(), reinterpret_cast<std::uint64_t>(leaf->results.data()),
                             leaf->results.size() * sizeof(Result), 0, nullptr)
            .value();
    world_[node].nic().collective().attach(world_[node].port(), leaf->edge);
    leaves_.push_back(std::move(leaf));
    return static_cast<int>(leaves_.size()) - 1;
  }
  int leaves() const { return static_cast<int>(leaves_.size()); }

  bool configure() {
    for (std::size_t i = 0; i < vces_.size(); ++i) {
      const Vce& vce = vces_[i];
      std::vector<CeEdge> edges;
      for (std::size_t c = 0; c < vce.children.size(); ++c) {
        const Child& child = vce.children[c];
        edges.push_back({.set = true,
                         .is_vce = child.is_vce,
                         .nic_address = static_cast<std::uint32_t>(
                             child.is_vce ? vces_[static_cast<std::size_t>(child.which)].node
                                          : leaves_[static_cast<std::size_t>(child.which)]->node),
                         .id = child.is_vce ? id(child.which) : UINT32_MAX,
                         .child = static_cast<std::uint32_t>(c)});
      }
      std::vector<const CeEdge*> pointers;
      for (const CeEdge& edge : edges) pointers.push_back(&edge);
      CeEdge up;
      if (vce.parent >= 0) up = edge_to(vce.parent, vce.child, true);
      const Errc done = world_[vce.node].nic().collective().configure(
          vce.index, pointers, vce.parent >= 0 ? &up : nullptr, i == 0 ? queue : nullptr, modes);
      if (done != Errc::ok) return false;
    }
    return true;
  }
  void destroy(int vce) {
    world_[vces_[static_cast<std::size_t>(vce)].node].nic().collective().destroy(
        vces_[static_cast<std::size_t>(vce)].index);
  }
  std::uint32_t id(int vce) const {
    const Vce& v = vces_[static_cast<std::size_t>(vce)];
    return ce_id(static_cast<wire::ProcessSlot>(v.node), v.index);
  }

  Errc join(int leaf, const CeValue& value, int which = 0) {
    return join_through(world_[leaves_[static_cast<std::size_t>(leaf)]->node].port(), leaf, value, which);
  }
  Errc join(int leaf, std::uint64_t reduction, std::uint8_t command, std::uint64_t first,
            std::uint64_t second, int which = 0) {
    return join(
        leaf, {.operand = {first, second}, .reduction = reduction, .command = command, .two_operands = true},
        which);
  }
  Errc join_through(Port& port, int leaf, const CeValue& value = {}, int which = 0) {
    Leaf& l = *leaves_[static_cast<std::size_t>(leaf)];
    Nic& nic = world_[l.node].nic();
    CeJoin join = contribution(leaf, value, which);
    if (usual) {
      join.exceptions_wanted = 0;
      const MrtEntry& entry = nic.view().region(l.key.index);
      const CeValue normal = ce_normal(value);
      const CeShortJoin short_join{.operand = {normal.operand[0], normal.operand[1]},
                                   .reduction = normal.reduction,
                                   .meta = ce_meta(normal),
                                   .result = join.result,
                                   .pending = join.pending,
                                   .entry = &entry,
                                   .entry_control = entry.control.load()};
      if (nic.collective().try_join(port, l.edge, short_join)) {
        ++short_joins;
        return Errc::ok;
      }
    }
    return nic.collective().join(port, l.edge, join);
  }
  // What GNI_CeCheckResult does first.
  void check(int leaf, int which = 0) {
    Leaf& l = *leaves_[static_cast<std::size_t>(leaf)];
    world_[l.node].nic().collective().look_for_result(l.results[static_cast<std::size_t>(which)].data());
  }
  // The leaf's client lets go of its results.
  Status deregister(int leaf) {
    Leaf& l = *leaves_[static_cast<std::size_t>(leaf)];
    return world_[l.node].nic().deregister(l.key);
  }
  CeEdge& edge(int leaf) { return leaves_[static_cast<std::size_t>(leaf)]->edge; }
  CeJoin contribution(int leaf, const CeValue& value, int which = 0) {
    Leaf& l = *leaves_[static_cast<std::size_t>(leaf)];
    return {.value = value,
            .exceptions_wanted = 0xf,
            .result = l.results[static_cast<std::size_t>(which)].data(),
            .pending = 0,
            .key = l.key};
  }

  // Every live node looks once, and its service thread runs once.
  void look() {
    for (int i = 0; i < world_.size(); ++i) {
      if (world_[i].alive_here) world_[i].nic().progress();
    }
    world_.serve_all();
    for (int i = 0; i < world_.size(); ++i) {
      if (world_[i].alive_here) world_[i].nic().progress();
    }
  }
  std::uint64_t result(int leaf, int word, int which = 0) const {
    return leaves_[static_cast<std::size_t>(leaf)]
        ->results[static_cast<std::size_t>(which)][static_cast<std::size_t>(word)];
  }
  // The same where another thread may write it.
  bool done_now(int leaf) const {
    std::uint64_t& control = leaves_[static_cast<std::size_t>(leaf)]->results[0][0];
    return ce_result::there(std::atomic_ref<std::uint64_t>(control).load(std::memory_order_acquire));
  }
  bool done(int leaf, int which = 0) const { return ce_result::there(result(leaf, 0, which)); }
  CeStatus status(int leaf, int which = 0) const {
    return static_cast<CeStatus>(ce_result::status(result(leaf, 0, which)));
  }

  template <typename Random>
  std::vector<int> shuffled(Random& random) const {
    std::vector<int> order(leaves_.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    return order;
  }

  // What the tree comes to, computed by walking it.
  CeValue oracle(const std::vector<CeValue>& values, Rounding rounding, int vce = 0) const {
    CeValue sum;
    bool any = false;
    for (const Child& child : vces_[static_cast<std::size_t>(vce)].children) {
      const CeValue next = child.is_vce ? oracle(values, rounding, child.which)
                                        : ce_normal(values[static_cast<std::size_t>(child.which)]);
      sum = any ? ce_combine(sum, next, rounding) : next;
      any = true;
    }
    return sum;
  }

 private:
  using Result = std::array<std::uint64_t, 3>;
  struct Child {
    bool is_vce;
    int which;
  };
  struct Vce {
    int node = 0;
    int parent = -1;
    std::uint32_t index = 0;
    std::uint32_t child = 0;  // of the parent
    std::vector<Child> children = {};
  };
  struct Leaf {
    int node = 0;
    CeEdge edge;
    MemKey key;
    std::vector<Result> results;
  };

  std::uint32_t add_child(int parent, int which, bool is_vce) {
    auto& children = vces_[static_cast<std::size_t>(parent)].children;
    children.push_back({is_vce, which});
    return static_cast<std::uint32_t>(children.size()) - 1;
  }
  CeEdge edge_to(int vce, std::uint32_t child, bool is_vce) const {
    return {.set = true,
            .is_vce = is_vce,
            .nic_address = static_cast<std::uint32_t>(vces_[static_cast<std::size_t>(vce)].node),
            .id = id(vce),
            .child = child};
  }

  World& world_;
  std::vector<Vce> vces_;
  std::vector<std::unique_ptr<Leaf>> leaves_;
};

}  // namespace orrery::nic::box
