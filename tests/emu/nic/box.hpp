// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/check.hpp"
#include "emu/nic/nic.hpp"

#include <memory>
#include <vector>

#include <sys/mman.h>

// The world in a box: any number of NICs in one process, no descriptors, no threads of their own. A test (or
// a seeded scheduler) decides when a service thread runs, when a process dies, how peers are reached.
namespace orrery::nic::box {

// How packets get from one node to another.
enum class Path : std::uint8_t {
  direct,  // same addresses: the initiator applies the target's rules
  frame,   // only as frames
};

class World;

// One pretended process: a segment, an environment, a NIC.
class Node final : public Environment {
 public:
  Node(World& world, wire::ProcessSlot slot, const Nic::Options& options);
  ~Node() override {
    nic_.reset();
    munmap(segment_, geometry().segment_bytes());
  }

  Nic& nic() { return *nic_; }
  Port& port() { return *port_; }
  bool alive_here = true;
  int rings = 0;  // how often somebody rang this node's bell

  static Geometry geometry() {
    return {.lane_count = 16, .lane_bytes = wire::kLaneControlBytes + 32768, .arena_bytes = 8u << 20};
  }

  // Environment
  Result<Range> inspect(std::uint64_t, std::uint64_t) override;
  Status adopt(std::uint64_t begin, std::uint64_t end, SwitchGuard& guard) override;
  void cut_off(std::uint64_t, std::uint64_t) override { ++cut_offs; }
  void settle(std::uint64_t, std::uint64_t) override {}
  void run_on_service_thread(void (*work)(void*), void* argument) override { work(argument); }
  Result<ProcessName> find_process(std::uint16_t domain, std::uint32_t nic_address,
                                   std::uint32_t instance) override;
  Result<PeerLink> connect(ProcessName process) override;
  bool alive(ProcessName process) override;
  bool slot_alive(wire::ProcessSlot slot) override { return alive({slot, 0}); }
  void ring(ProcessName process) override;
  void ring_self() override {}
  Errc attach_write(ProcessName, std::uint64_t, const std::byte*, std::uint64_t) override {
    return Errc::unsupported;
  }
  Errc attach_read(ProcessName, std::byte*, std::uint64_t, std::uint64_t) override {
    return Errc::unsupported;
  }
  Errc guarded(Errc (*body)(void*), void* argument) override { return body(argument); }
  WaitBudget wait_budget() override { return {.spins = 1, .yields = 1}; }

  int cut_offs = 0;

 private:
  World& world_;
  void* segment_ = nullptr;
  std::unique_ptr<Nic> nic_;
  Port* port_ = nullptr;
};

class World {
 public:
  World(int nodes, Path path, const Nic::Options& options = {}) : path_(path) {
    for (int i = 0; i < nodes; ++i) {
      nodes_.push_back(std::make_unique<Node>(*this, static_cast<wire::ProcessSlot>(i), options));
    }
  }

  Node& operator[](int i) { return *nodes_[static_cast<std::size_t>(i)]; }
  int size() const { return static_cast<int>(nodes_.size()); }
  Path path() const { return path_; }
  void set_path(Path path) { path_ = path; }

  // An endpoint of node `from` that is bound to node `to`.
  std::unique_ptr<Endpoint> endpoint(int from, int to, CompletionQueue* queue) {
    auto endpoint = std::make_unique<Endpoint>();
    endpoint->port = &(*this)[from].port();
    endpoint->queue = queue;
    if (queue != nullptr) queue->become_source();
    endpoint->bound = true;
    endpoint->remote_nic_address = 0;
    endpoint->remote_instance = static_cast<std::uint32_t>(to);
    endpoint->remote_value = static_cast<std::uint32_t>(0x5000 + from);
    endpoint->local_value = static_cast<std::uint32_t>(0x4000 + to);
    return endpoint;
  }

  // Lets every live node's service thread run once.
  void serve_all() {
    for (auto& node : nodes_) {
      if (node->alive_here) node->nic().serve();
    }
  }

  // Kills a node: it runs no more, and the others hear of it.
  void kill(int i) {
    (*this)[i].alive_here = false;
    for (auto& node : nodes_) {
      if (node->alive_here) node->nic().peer_died(static_cast<wire::ProcessSlot>(i));
    }
  }

 private:
  Path path_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

inline Node::Node(World& world, wire::ProcessSlot slot, const Nic::Options& options) : world_(world) {
  segment_ = mmap(nullptr, geometry().segment_bytes(), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ORRERY_CHECK(segment_ != MAP_FAILED, "no memory for a segment");
  const NicView view = NicView::create(segment_, geometry(), slot, 1000 + slot, false);
  nic_ = std::make_unique<Nic>(*this, view, slot, options);
  port_ = nic_->open_port(/*domain=*/7, /*nic_address=*/0, /*instance=*/slot);
}

inline Result<Environment::Range> Node::inspect(std::uint64_t, std::uint64_t) {
  return Range{.readable = true, .writable = true, .direct = world_.path() == Path::direct};
}

inline Status Node::adopt(std::uint64_t begin, std::uint64_t end, SwitchGuard& guard) {
  return guard.before_switch(begin, end) ? Status{} : Status{Errc::timeout};
}

inline Result<ProcessName> Node::find_process(std::uint16_t, std::uint32_t, std::uint32_t instance) {
  if (instance >= static_cast<std::uint32_t>(world_.size())) return Errc::timeout;
  return ProcessName{static_cast<wire::ProcessSlot>(instance), 0};
}

inline Result<PeerLink> Node::connect(ProcessName process) {
  PeerLink link;
  link.process = process;
  link.nic = world_[process.slot].nic().view();
  link.same_address_space = world_.path() == Path::direct;
  return Result<PeerLink>(std::move(link));
}

inline bool Node::alive(ProcessName process) { return world_[process.slot].alive_here; }

inline void Node::ring(ProcessName process) { ++world_[process.slot].rings; }

}  // namespace orrery::nic::box
