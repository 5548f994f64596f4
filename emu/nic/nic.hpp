// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/attendant.hpp"
#include "emu/nic/collective/collective_engine.hpp"
#include "emu/nic/device/device.hpp"
#include "emu/nic/events/counter.hpp"
#include "emu/nic/events/error_log.hpp"
#include "emu/nic/events/ports.hpp"
#include "emu/nic/events/queues.hpp"
#include "emu/nic/events/record_queue.hpp"
#include "emu/nic/events/waits.hpp"
#include "emu/nic/gate/deferrals.hpp"
#include "emu/nic/gate/options.hpp"
#include "emu/nic/gate/suspend.hpp"
#include "emu/nic/gate/triggered_put.hpp"
#include "emu/nic/initiator/initiator.hpp"
#include "emu/nic/memory/regions.hpp"
#include "emu/nic/message/channel.hpp"
#include "emu/nic/message/datagram.hpp"
#include "emu/nic/message/messages.hpp"
#include "emu/nic/state/arena.hpp"
#include "emu/nic/transport/transport.hpp"

#include <cstdint>
#include <memory>

namespace orrery::nic {

// The emulated NIC of one process: makes its units and hands them out. Any number of them run in one
// process. The posting thread applies an operation to the target's state itself where it can reach that; else
// it travels as frames, and the target's polling threads apply it. What a call does is said at the unit that
// it leads to.
//
// Threads: post: one thread per endpoint and per queue of completions at a time, different ones in parallel,
// of one port too. poll and the queues: one thread per queue.
// register_region, deregister, create and destroy calls: any thread. serve(): the service thread.
// Invariants: (1) an operation that was accepted raises exactly the events it asked for, whatever happens to
// the peer; (2) data is visible before any event that tells of it; (3) no lock is held while user memory is
// touched, but the frame locks while a frame is applied. Locks: state/lock_rank.hpp. It lives no longer than
// what it is made with.
class Nic {
 public:
  using Options = NicOptions;

  Nic(HostServices& services, NicView view, wire::ProcessSlot self, const Options& options);
  ~Nic();
  void end();  // nothing of it runs by itself any more; calls that other threads are in go on
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  // ---- the units ----
  Arena& arena() { return arena_; }
  Attendant& attendant() { return attendant_; }
  ChannelUnit& channels() { return channels_; }
  CollectiveEngine& collective() { return collective_; }
  CounterPool& counters() { return counters_; }
  DatagramUnit& datagrams() { return datagrams_; }
  Device& device() { return device_; }
  ErrorLog& errors() { return errors_; }
  EventQueues& queues() { return queues_; }
  Initiator& initiator() { return initiator_; }
  Messages& messages() { return messages_; }
  PeerTable& peers() { return peers_; }
  Ports& ports() { return ports_; }
  RecordQueues& record_queues() { return record_queues_; }
  Regions& regions() { return regions_; }
  Router& router() { return router_; }
  Suspension& suspension() { return suspension_; }
  Transport& transport() { return transport_; }
  Triggered& triggered() { return triggered_; }
  Waits& waits() { return waits_; }

  // ---- what nearly every client calls, at the unit that does it ----
  Errc post(Endpoint& endpoint, const Request& request) { return initiator_.post(endpoint, request); }
  // Next event of `queue`, after letting the NIC progress if there is none. Errors: not_done, overrun.
  [[gnu::always_inline]] Errc poll(CompletionQueue& queue, Event* event) {
    return attendant_.poll(queue, event);
  }
  // Applies what arrived and continues what is under way. Returns whether anything may have come of it. Any
  // thread; cheap when there is nothing.
  bool progress() { return attendant_.progress(nullptr); }
  bool serve() { return attendant_.serve(); }
  Port* open_port(std::uint16_t domain, std::uint32_t nic_address, std::uint32_t instance) {
    return ports_.open(domain, nic_address, instance);
  }
  Result<CompletionQueue*> create_queue(std::uint32_t depth, std::uint32_t mode) {
    return queues_.create(depth, mode);
  }
  Result<MemKey> register_region(const Port& port, std::uint64_t address, std::uint64_t length,
                                 std::uint8_t flags, CompletionQueue* queue, const HeldEntry& held = {}) {
    return regions_.register_region(port, address, length, flags, queue, held);
  }
  Status deregister(const MemKey& key) { return regions_.deregister(key); }

  // ---- what ends at several units ----
  // No operation goes through the port any more, and no reduction ends there.
  void close_port(Port* port);
  // Registrations that name it raise no events any more; waits for peers that are raising one, at most
  // drain_limit_ns. Errors: no_resource (an endpoint, a channel or a collective engine names it).
  Status destroy_queue(CompletionQueue* queue);

  // ---- what it was made with ----
  clock::Clock* clock() const { return clock_; }
  HostServices& services() const { return services_; }
  bool has_faults() const { return faults_ != nullptr; }  // faults are asked for: no fast path
  NicView view() const { return pending_.view; }
  wire::ProcessSlot self() const { return self_; }
  const Options& options() const { return options_; }

 private:
  void look_after_units();
  void close();

  Pending pending_;  // first: what a poll looks at
  HostServices& services_;
  const wire::ProcessSlot self_;
  const Options options_;
  clock::Clock* const clock_;
  const std::unique_ptr<FaultUnit> faults_;  // null: nothing ever fails by itself
  ErrorLog errors_;
  Arena arena_;
  Ports ports_;
  EventQueues queues_;
  PeerTable peers_;
  HotMemory hot_;
  CounterPool counters_;
  RecordQueues record_queues_;
  Device device_;
  Attendant attendant_;  // before all that wait by it
  Regions regions_;
  Transport transport_;
  Router router_;
  const std::unique_ptr<TimedOps> timed_;  // null without a clock
  Delays delays_;
  Deferrals deferrals_;
  Initiator initiator_;
  Triggered triggered_;
  Suspension suspension_;
  Waits waits_;
  DatagramUnit datagrams_;
  ChannelUnit channels_;
  Messages messages_;
  CollectiveEngine collective_;
};

}  // namespace orrery::nic
