// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/check.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/nic.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <sys/mman.h>

// The world in a box: any number of NICs in one process, no descriptors, no threads of their own. A test (or
// a seeded scheduler) decides when a service thread runs, when a process dies, how peers are reached.
namespace orrery::nic::box {

// How packets get from one node to another.
enum class Path : std::uint8_t {
  direct,  // same addresses: the initiator applies the target's rules
  frame,   // only as frames
  adopt,   // as frames, or attach if the world allows it, until the target's service thread has adopted the
           // pages
};

class World;

// One pretended process: a segment, an environment, a NIC.
class Node final : public HostServices {
 public:
  Node(World& world, wire::ProcessSlot slot, const Nic::Options& options, std::uint32_t generation = 0);
  ~Node() override {
    nic_.reset();
    munmap(segment_, segment_bytes_);
  }

  Nic& nic() { return *nic_; }
  Port& port() { return *port_; }
  ProcessName name() const { return name_; }
  bool alive_here = true;
  std::atomic<int> rings = 0;  // how often this node's bell was rung, by whatever thread
  bool attached = true;        // whether others find its ports

  // HostServices
  Result<Range> inspect(std::uint64_t, std::uint64_t) override;
  Status adopt(std::uint64_t begin, std::uint64_t end, SwitchGuard& guard) override;
  Pages adoptable_around(std::uint64_t page, std::uint64_t low, std::uint64_t high) override {
    if (adoptable) return adoptable(page, low, high);
    return {page, page + kPageBytes};
  }
  void cut_off(std::uint64_t, std::uint64_t) override { ++cut_offs; }
  void settle(std::uint64_t, std::uint64_t) override {}
  void run_on_service_thread(void (*work)(void*), void* argument) override { work(argument); }
  ProcessName self() override { return name_; }
  Result<ProcessName> find_port(std::uint16_t domain, std::uint32_t nic_address,
                                std::uint32_t instance) override;
  Result<ProcessName> process_in(wire::ProcessSlot slot) override;
  Result<ProcessName> find_process(std::uint32_t nic_address, wire::ProcessSlot slot) override;
  Result<PeerRoute> connect(ProcessName process) override;
  bool alive(ProcessName process) override;
  HazardBoard* hazard_board() override;
  bool slot_alive(wire::ProcessSlot slot) override;
  bool slot_stopped(wire::ProcessSlot) override { return false; }
  void ring(ProcessName process) override;
  void ring_self() override {}
  void postpone_service(std::int64_t ns) override { postponed_ns.push_back(ns); }
  Errc attach_write(ProcessName, const MrtEntry& entry, std::uint64_t word, std::uint64_t to,
                    const std::byte* from, std::uint64_t bytes) override;
  Errc attach_read(ProcessName, std::byte*, std::uint64_t, std::uint64_t) override;
  Errc guarded(Errc (*body)(void*), void* argument) override { return body(argument); }
  clock::Clock* clock() override;
  WaitBudget wait_budget() override { return {.spins = 1, .yields = 1}; }

  // What of its memory an extent may take in; none: the page that is asked for.
  std::function<Pages(std::uint64_t page, std::uint64_t low, std::uint64_t high)> adoptable;
  // The program takes pages away: they are in the memory file no more.
  void unmap(std::uint64_t begin, std::uint64_t end) {
    const ExtentMap::Token token = nic_->regions().leave_pages(begin, end);
    adopted_.erase(adopted_.lower_bound(begin), adopted_.lower_bound(end));
    nic_->regions().left_pages(token);
  }

  int cut_offs = 0;
  std::vector<std::int64_t> postponed_ns;  // each time that the service thread was put off

 private:
  Errc attach(ProcessName process, std::uint64_t address, std::uint64_t bytes) const;

  World& world_;
  const ProcessName name_;
  std::set<std::uint64_t> adopted_;  // addresses of pages in the pretended memory file
  // Pages that are being moved right now, in one word: threads that attach elsewhere look at it meanwhile.
  struct Moving {
    std::uint64_t first : 48;
    std::uint64_t count : 16;
  };
  std::atomic<Moving> moving_{Moving{}};
  std::uint64_t segment_bytes_ = 0;
  void* segment_ = nullptr;
  std::unique_ptr<Nic> nic_;
  Port* port_ = nullptr;
};

class World {
 public:
  static constexpr std::uint32_t kLaneBytes = wire::kDefaultLaneBytes;
  // `sharing`: of the segments' mapping. With MAP_SHARED a forked child can play one of the nodes.
  World(int nodes, Path path, const Nic::Options& options = {}, int sharing = MAP_PRIVATE,
        std::uint32_t lane_bytes = kLaneBytes, clock::Clock* clock = nullptr, bool has_board = true)
      : path_(path), options_(options), sharing_(sharing), lane_bytes_(lane_bytes), clock_(clock) {
    if (has_board) {
      void* const board = mmap(nullptr, sizeof(HazardBoard), PROT_READ | PROT_WRITE,
                               sharing | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      ORRERY_CHECK(board != MAP_FAILED, "no memory for a board");
      board_.reset(static_cast<HazardBoard*>(board));
    }
    for (int i = 0; i < nodes; ++i) {
      nodes_.push_back(std::make_unique<Node>(*this, static_cast<wire::ProcessSlot>(i), options));
    }
  }

  Node& operator[](int i) { return *nodes_[static_cast<std::size_t>(i)]; }
  int size() const { return static_cast<int>(nodes_.size()); }
  Path path() const { return path_; }
  int sharing() const { return sharing_; }
  clock::Clock* clock() const { return clock_; }
  HazardBoard* board() const { return board_.get(); }
  Geometry geometry() const { return {.lane_count = 16, .lane_bytes = lane_bytes_, .arena_bytes = 8u << 20}; }

  bool attach = false;          // whether the kernel copies between processes
  bool adoption_fails = false;  // adoption stops after its first part
  // Called while a node's pages are neither here nor there: the others go on.
  std::function<void(int node)> during_switch;
  std::string violation;  // the first access to pages that were being moved

  // Unmaps what is left of the dead. REQUIRES: the living were told, and speak to them no more.
  void bury() { graveyard_.clear(); }
  // A new process in the slot of one that died.
  Node& revive(int i) {
    auto& place = nodes_[static_cast<std::size_t>(i)];
    const std::uint32_t generation = place->name().generation + 1;
    graveyard_.push_back(std::move(place));
    place = std::make_unique<Node>(*this, static_cast<wire::ProcessSlot>(i), options_, generation);
    return *place;
  }
  void set_path(Path path) { path_ = path; }

  // An endpoint of node `from` that is bound to node `to`.
  std::unique_ptr<Endpoint> endpoint(int from, int to, CompletionQueue* queue) {
    auto endpoint = std::make_unique<Endpoint>();
    endpoint->port = &(*this)[from].port();
    endpoint->queue = queue;
    if (queue != nullptr) queue->become_source();
    endpoint->bound = true;
    endpoint->remote_nic_address = static_cast<std::uint32_t>(to);
    endpoint->remote_event_data = static_cast<std::uint32_t>(0x5000 + from);
    endpoint->local_event_data = static_cast<std::uint32_t>(0x4000 + to);
    return endpoint;
  }

  // Lets every live node's service thread run once.
  void serve_all() {
    for (auto& node : nodes_) {
      if (node->alive_here) node->nic().serve();
    }
  }

  // Until no thread, the engine's included, touches an endpoint of node `from` any more: the one that raised
  // its event may be about to count itself out. False: that never comes.
  bool settle(int from, const Endpoint& endpoint) {
    const std::int64_t deadline = monotonic_ns() + 5'000'000'000;
    while (!endpoint.is_idle()) {
      if (monotonic_ns() > deadline) return false;
      (*this)[from].nic().progress();
      serve_all();
      yield_cpu();
    }
    return true;
  }

  // Kills a node: it runs no more, and the others hear of it.
  void kill(int i) {
    const ProcessName name = (*this)[i].name();
    (*this)[i].alive_here = false;
    for (auto& node : nodes_) {
      if (node->alive_here) node->nic().attendant().peer_died(name);
    }
  }

 private:
  Path path_;
  const Nic::Options options_;
  const int sharing_;
  const std::uint32_t lane_bytes_;
  clock::Clock* const clock_;  // of every node; none: raw time
  struct Unmap {
    void operator()(HazardBoard* board) const { munmap(board, sizeof *board); }
  };
  std::unique_ptr<HazardBoard, Unmap> board_;  // of all nodes; before them
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Node>> graveyard_;  // others still have their segments mapped
};

inline Node::Node(World& world, wire::ProcessSlot slot, const Nic::Options& options, std::uint32_t generation)
    : world_(world), name_{slot, generation} {
  segment_bytes_ = world.geometry().segment_bytes();
  segment_ = mmap(nullptr, segment_bytes_, PROT_READ | PROT_WRITE,
                  world.sharing() | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ORRERY_CHECK(segment_ != MAP_FAILED, "no memory for a segment");
  const NicView view =
      NicView::create(segment_, world.geometry(), slot, 1000 + slot + 1024 * generation, false);
  nic_ = std::make_unique<Nic>(*this, view, slot, options);
  port_ = nic_->open_port(/*domain=*/7, /*nic_address=*/slot, /*instance=*/slot);
}

inline Result<HostServices::Range> Node::inspect(std::uint64_t address, std::uint64_t length) {
  bool direct = world_.path() == Path::direct;
  if (world_.path() == Path::adopt) {
    direct = true;
    for (std::uint64_t page = address & ~(kPageBytes - 1); page < address + length; page += kPageBytes) {
      direct = direct && adopted_.count(page) != 0;
    }
  }
  return Range{.readable = true, .writable = true, .direct = direct};
}

inline Status Node::adopt(std::uint64_t begin, std::uint64_t end, SwitchGuard& guard) {
  constexpr std::uint64_t kPart = 4 * kPageBytes;
  std::uint64_t part_end = begin;
  for (std::uint64_t part = begin; part < end; part = part_end) {
    // What is in the memory file already stays as it is, and peers go on there through other registrations.
    part_end = part + kPageBytes;
    if (adopted_.count(part) != 0) continue;
    while (part_end < end && part_end - part < kPart && adopted_.count(part_end) == 0) part_end += kPageBytes;
    if (!guard.before_switch(part, part_end)) return Errc::timeout;
    if (world_.adoption_fails && part != begin) return Errc::no_memory;
    moving_.store({part / kPageBytes, (part_end - part) / kPageBytes}, std::memory_order_relaxed);
    if (world_.during_switch) {
      // Only a world that plays with its pages hands out whole ones: nothing else may be read around a range.
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(part);
      const std::vector<std::uint8_t> before(bytes, bytes + (part_end - part));
      world_.during_switch(name_.slot);
      if (!std::equal(before.begin(), before.end(), bytes))
        world_.violation = "pages changed while they moved";
    }
    moving_.store({}, std::memory_order_relaxed);
    for (std::uint64_t page = part; page < part_end; page += kPageBytes) adopted_.insert(page);
  }
  return {};
}

inline Errc Node::attach(ProcessName process, std::uint64_t address, std::uint64_t bytes) const {
  if (!world_.attach) return Errc::unsupported;
  const Node& target = world_[process.slot];
  if (target.name() != process || !target.alive_here) return Errc::unreachable;
  const Moving moving = target.moving_.load(std::memory_order_relaxed);
  const std::uint64_t begin = moving.first * kPageBytes;
  if (address < begin + moving.count * kPageBytes && begin < address + bytes) {
    world_.violation = "attached to pages that were being moved";
  }
  return Errc::ok;
}

inline Errc Node::attach_write(ProcessName process, const MrtEntry& entry, std::uint64_t word,
                               std::uint64_t to, const std::byte* from, std::uint64_t bytes) {
  if (entry.control.load(std::memory_order_acquire) != word) return Errc::not_done;
  const Errc possible = attach(process, to, bytes);
  if (possible == Errc::ok) std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return possible;
}

inline Errc Node::attach_read(ProcessName process, std::byte* to, std::uint64_t from, std::uint64_t bytes) {
  const Errc possible = attach(process, from, bytes);
  if (possible == Errc::ok) std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return possible;
}

// Every node is a NIC address of its own.
inline Result<ProcessName> Node::find_process(std::uint32_t nic_address, wire::ProcessSlot slot) {
  if (slot >= world_.size() || !world_[slot].alive_here) return Errc::unreachable;
  if (nic_address != slot) return Errc::no_match;
  return world_[slot].name();
}

// Every node's ports have its number as NIC address; the instance numbers do not matter here.
inline Result<ProcessName> Node::find_port(std::uint16_t, std::uint32_t nic_address, std::uint32_t) {
  if (nic_address >= static_cast<std::uint32_t>(world_.size())) return Errc::no_match;
  const Node& node = world_[static_cast<int>(nic_address)];
  if (!node.attached) return Errc::no_match;
  if (!node.alive_here) return Errc::unreachable;
  return node.name();
}

inline Result<ProcessName> Node::process_in(wire::ProcessSlot slot) {
  if (slot >= world_.size() || !world_[slot].alive_here) return Errc::unreachable;
  return world_[slot].name();
}

inline Result<PeerRoute> Node::connect(ProcessName process) {
  PeerRoute link;
  link.process = process;
  link.nic = world_[process.slot].nic().view();
  link.same_address_space = world_.path() == Path::direct;
  if (world_.path() == Path::adopt) link.memory = std::make_unique<IdentityMap>();
  return Result<PeerRoute>(std::move(link));
}

inline bool Node::alive(ProcessName process) {
  if (process.slot >= world_.size()) return false;
  const Node& node = world_[process.slot];
  return node.name() == process && node.alive_here;
}

inline HazardBoard* Node::hazard_board() { return world_.board(); }
inline clock::Clock* Node::clock() { return world_.clock(); }

inline bool Node::slot_alive(wire::ProcessSlot slot) { return world_[slot].alive_here; }

inline void Node::ring(ProcessName process) {
  world_[process.slot].rings.fetch_add(1, std::memory_order_relaxed);
}

// A put of one word.
inline Request put_word(const std::uint64_t* from, const std::uint64_t* to, const MemKey& key,
                        std::uint32_t flags) {
  Request request;
  request.op = Op::put;
  request.flags = flags;
  request.local_address = reinterpret_cast<std::uint64_t>(from);
  request.remote_address = reinterpret_cast<std::uint64_t>(to);
  request.length = sizeof *from;
  request.remote = key;
  return request;
}

}  // namespace orrery::nic::box
