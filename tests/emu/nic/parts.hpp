// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/check.hpp"
#include "emu/nic/events/error_log.hpp"
#include "emu/nic/events/ports.hpp"
#include "emu/nic/events/queues.hpp"
#include "emu/nic/initiator/deferral.hpp"
#include "emu/nic/initiator/initiator.hpp"
#include "emu/nic/initiator/router.hpp"
#include "emu/nic/memory/regions.hpp"
#include "emu/nic/state/arena.hpp"
#include "emu/nic/state/host_services.hpp"
#include "emu/nic/state/mover.hpp"
#include "emu/nic/transport/endpoint.hpp"
#include "emu/nic/transport/hot_memory.hpp"
#include "emu/nic/transport/peers.hpp"
#include "emu/nic/transport/pending.hpp"
#include "emu/nic/transport/transport.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <sys/mman.h>

// Single classes of a NIC without the NIC: a segment, a host that does as it is told, and what a class under
// test is made with.
namespace orrery::nic::parts {

// One process's host. A peer is reached at its segment; its memory as `same_space` says.
class Host final : public HostServices {
 public:
  explicit Host(wire::ProcessSlot slot) : name_{slot, 3} {
    segment_ = mmap(nullptr, kGeometry.segment_bytes(), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ORRERY_CHECK(segment_ != MAP_FAILED, "no memory for a segment");
    view = NicView::create(segment_, kGeometry, slot, 1000 + slot, false);
  }
  ~Host() { munmap(segment_, kGeometry.segment_bytes()); }

  NicView view;
  std::vector<Host*> others;  // by slot; null: none
  bool lives = true;
  clock::Clock* time = nullptr;  // its clock; none: raw time
  bool direct = false;           // its registered memory lies in the memory file
  bool same_space = false;       // peers reach its addresses as their own
  int rings = 0;
  int self_rings = 0;
  int wires_handed_back = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> adopted;

  std::function<void()> inspected;  // called once, when an inspection knows its answer

  Result<Range> inspect(std::uint64_t, std::uint64_t) override {
    const Range found{.readable = true, .writable = true, .direct = direct};
    if (inspected != nullptr) std::exchange(inspected, nullptr)();
    return found;
  }
  Status adopt(std::uint64_t begin, std::uint64_t end, SwitchGuard& guard) override {
    if (!guard.before_switch(begin, end)) return Errc::timeout;
    adopted.emplace_back(begin, end);
    direct = true;
    return {};
  }
  Pages adoptable_around(std::uint64_t page, std::uint64_t, std::uint64_t) override {
    return {page, page + kPageBytes};
  }
  void cut_off(std::uint64_t, std::uint64_t) override { direct = false; }
  void settle(std::uint64_t, std::uint64_t) override {}
  void run_on_service_thread(void (*work)(void*), void* argument) override { work(argument); }
  ProcessName self() override { return name_; }
  Result<ProcessName> find_port(std::uint16_t, std::uint32_t address, std::uint32_t) override {
    return process_in(static_cast<wire::ProcessSlot>(address));
  }
  Result<ProcessName> process_in(wire::ProcessSlot slot) override {
    if (slot >= others.size() || others[slot] == nullptr) return Errc::unreachable;
    return others[slot]->name_;
  }
  // Every process is a NIC address of its own.
  Result<ProcessName> find_process(std::uint32_t address, wire::ProcessSlot slot) override {
    if (address != slot) return Errc::no_match;
    return process_in(slot);
  }
  Result<PeerRoute> connect(ProcessName process) override {
    if (const auto there = process_in(process.slot); !there.ok()) return there.code();
    PeerRoute route;
    route.process = process;
    route.nic = others[process.slot]->view;
    route.same_address_space = others[process.slot]->same_space;
    return Result<PeerRoute>(std::move(route));
  }
  bool alive(ProcessName process) override { return slot_alive(process.slot); }
  bool slot_alive(wire::ProcessSlot slot) override {
    return slot < others.size() && others[slot] != nullptr && others[slot]->lives;
  }
  bool slot_stopped(wire::ProcessSlot) override { return false; }
  void ring(ProcessName process) override { ++others[process.slot]->rings; }
  void ring_self() override { ++self_rings; }
  Errc attach_write(ProcessName, const MrtEntry&, std::uint64_t, std::uint64_t, const std::byte*,
                    std::uint64_t) override {
    return Errc::unsupported;
  }
  Errc attach_read(ProcessName, std::byte*, std::uint64_t, std::uint64_t) override {
    return Errc::unsupported;
  }
  Errc guarded(Errc (*body)(void*), void* argument) override { return body(argument); }
  WaitBudget wait_budget() override { return {.spins = 1, .yields = 1}; }
  clock::Clock* clock() override { return time; }
  void hand_wire_back() override { ++wires_handed_back; }

 private:
  static constexpr Geometry kGeometry{
      .lane_count = 4, .lane_bytes = wire::kDefaultLaneBytes, .arena_bytes = 1 << 20};
  const ProcessName name_;
  void* segment_ = nullptr;
};

// What is called while something waits.
struct Moves final : Mover {
  std::function<void()> work;
  int calls = 0;
  int handed_back = 0;
  bool move_along() override {
    ++calls;
    if (work) work();
    return true;
  }
  bool progress(const void*) override { return move_along(); }
  void move_in_turn() override { (void)move_along(); }
  void hand_frames_back() override { ++handed_back; }
};

// Memory, frames and ways of one process.
struct Node {
  explicit Node(wire::ProcessSlot slot)
      : host(slot),
        ports(errors),
        queues(host.view, arena),
        peers(host, slot),
        regions(host, host.view, slot, arena, {.drain_limit_ns = 1'000'000'000},
                {.await_frames =
                     [this] {
                       ++awaited_frames;
                       transport.await_application();
                     },
                 .take_frames = [this] { (void)transport.poll_requests(true); },
                 .flush_amo_cache = [this](std::uint64_t from,
                                           std::uint64_t to) { transport.flush_amo_cache(from, to); },
                 .removed = [this] { ++removed; }}),
        transport(host, pending, slot, peers, ports, regions, hot, true,
                  {.to_engine =
                       [this](const wire::PacketHeader& header) {
                         engine_packets.push_back(header);
                         return Errc::ok;
                       },
                   .note_datagram_from = [](const wire::PacketHeader&) {}}),
        router(host, pending, slot, transport, regions, hot, moves,
               {.bte_crossover = 1 << 20, .grants = true}),
        port(ports.open(7, slot, slot)) {
    moves.work = [this] { move_along(); };
  }
  ~Node() { router.bte().end(); }

  void move_along() {
    (void)transport.poll_responses();
    (void)transport.poll_requests(false);
  }
  MemKey expose(void* at, std::uint64_t bytes, std::uint8_t flags = 0, CompletionQueue* queue = nullptr) {
    return regions.register_region(*port, reinterpret_cast<std::uint64_t>(at), bytes, flags, queue).value();
  }

  Host host;
  Pending pending{host.view, false, false};
  Moves moves;
  ErrorLog errors;
  Arena arena{host.view};
  Ports ports;
  EventQueues queues;
  PeerTable peers;
  HotMemory hot{host, 4};
  int awaited_frames = 0;
  int removed = 0;
  std::vector<wire::PacketHeader> engine_packets;
  Regions regions;
  Transport transport;
  Router router;
  Port* port;
};

struct Pair {
  Pair() { a.host.others = b.host.others = {&a.host, &b.host}; }
  Node a{0}, b{1};

  // Addressed as the initiator does it: `from` to memory of `key` at `to`; `told` hears of the end.
  Request put(Node& from, Node& to, const void* source, void* target, std::uint64_t bytes, const MemKey& key,
              Listener* told) {
    Request request;
    request.op = Op::put;
    request.local_address = reinterpret_cast<std::uint64_t>(source);
    request.remote_address = reinterpret_cast<std::uint64_t>(target);
    request.length = bytes;
    request.remote = key;
    request.completion.listener = told;
    request.completion.target = key.process;
    request.peer = from.peers.connect(to.host.self()).value();
    request.domain = from.port->domain;
    return request;
  }
  // Until neither has anything left to do.
  void settle() {
    for (int i = 0; i < 100; ++i) {
      a.move_along();
      b.move_along();
    }
  }
};

// Defers as the test says.
struct Defers final : Deferral {
  Begun answer = Begun::ended(Errc::ok);
  std::vector<Request> asked;
  std::vector<Request> held;
  Begun defer_or_fail(Endpoint&, const Request& request) override {
    asked.push_back(request);
    return answer;
  }
  Errc hold(const Request& request) override {
    held.push_back(request);
    return Errc::ok;
  }
  bool holds_any() const override { return !held.empty(); }
};

// What posts from a node of a pair to the other.
struct Poster {
  explicit Poster(Node& from, bool with_deferral = false)
      : initiator(from.host, from.host.view, from.pending, from.peers, from.transport, from.hot, from.router,
                  defers, with_deferral, from.moves),
        queue(from.queues.create(64, 0).value()) {
    endpoint.port = from.port;
    endpoint.queue = queue;
    endpoint.bound = true;
    endpoint.remote_nic_address = from.host.self().slot == 0 ? 1 : 0;
    queue->become_source();
  }
  // How the next operation ended; not_done: none has.
  Errc ended() {
    Event event;
    return queue->take(&event) == Errc::ok ? event.status : Errc::not_done;
  }
  Defers defers;
  Initiator initiator;
  CompletionQueue* queue;
  Endpoint endpoint;
};

// Keeps what it is told.
struct Told final : Listener {
  void ended(const Completion&, const Ending& ending) override { all.push_back(ending.status); }
  std::vector<Errc> all;
};

}  // namespace orrery::nic::parts
