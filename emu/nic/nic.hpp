// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/clock/clock.hpp"
#include "emu/nic/attendant.hpp"
#include "emu/nic/collective/collective_engine.hpp"
#include "emu/nic/device/device_registers.hpp"
#include "emu/nic/device/resource_use.hpp"
#include "emu/nic/device/translation_table.hpp"
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
#include "emu/nic/target/amo_cache.hpp"
#include "emu/nic/transport/transport.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

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
  using StopWaiting = Waits::Stop;

  Nic(HostServices& services, NicView view, wire::ProcessSlot self, const Options& options);
  ~Nic();
  void end();  // nothing of it runs by itself any more; calls that other threads are in go on
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  // ---- the units ----
  Regions& regions() { return regions_; }
  RegistrationTable& registrations() { return regions_.table(); }
  Transport& transport() { return transport_; }
  Router& router() { return router_; }
  Initiator& initiator() { return initiator_; }
  Messages& messages() { return messages_; }
  Waits& waits() { return waits_; }
  Triggered& triggered() { return triggered_; }
  Suspension& suspension() { return suspension_; }
  Attendant& attendant() { return attendant_; }
  CounterPool& counters() { return counters_; }
  RecordQueues& record_queues() { return record_queues_; }
  DatagramUnit& datagrams() { return datagrams_; }
  ChannelUnit& channels() { return channels_; }
  CollectiveEngine& collective() { return collective_; }
  ErrorLog& errors() { return errors_; }
  DeviceRegisters& registers() { return registers_; }
  ResourceUse& resources() { return resources_; }
  TranslationTable& translation() { return translation_; }

  // ---- ports ----
  Port* open_port(std::uint16_t domain, std::uint32_t nic_address, std::uint32_t instance) {
    return ports_.open(domain, nic_address, instance);
  }
  void close_port(Port* port);
  std::uint32_t port_count() { return ports_.count(); }  // any thread, the next two too
  std::uint32_t queue_count() { return queues_.count(); }
  std::uint32_t block_transfers() { return router_.bte().outstanding(); }

  // ---- memory (Regions) ----
  Result<MemKey> register_region(const Port& port, std::uint64_t address, std::uint64_t length,
                                 std::uint8_t flags, CompletionQueue* queue, const HeldEntry& held = {}) {
    return regions_.register_region(port, address, length, flags, queue, held);
  }
  Result<MemKey> register_segments(const Port& port, std::span<const Segment> segments, std::uint8_t flags,
                                   CompletionQueue* queue) {
    return regions_.register_segments(port, segments, flags, queue);
  }
  Result<MemKey> register_space(const Port& port, std::uint8_t flags, CompletionQueue* queue) {
    return regions_.register_space(port, flags, queue);
  }
  Status deregister(const MemKey& key) { return regions_.deregister(key); }
  Errc check_local(const Port& port, const MemKey& key, std::uint64_t address, std::uint64_t length,
                   bool writes) const {
    return regions_.check_local(port.domain, key, address, length, writes);
  }
  // Zeroed room in the arena for an API's unit, for good: its offset, or 0.
  std::uint64_t reserve_arena(std::uint64_t bytes) { return arena_.take(bytes, Arena::Use::unit); }

  // ---- queues (EventQueues, Waits) ----
  Result<CompletionQueue*> create_queue(std::uint32_t depth, std::uint32_t mode) {
    return queues_.create(depth, mode);
  }
  // Registrations that name it raise no events any more; waits for peers that are raising one, at most
  // drain_limit_ns. Errors: no_resource (an endpoint, a channel or a collective engine names it).
  Status destroy_queue(CompletionQueue* queue);
  // Next event of `queue`, after letting the NIC progress if there is none. Errors: not_done, overrun.
  [[gnu::always_inline]] Errc poll(CompletionQueue& queue, Event* event) {
    const Errc found = queue.take(event);
    if (found != Errc::not_done) [[likely]]
      return found;
    // A caller that waits for a message's event reads the message next: its line comes with the event's.
    __builtin_prefetch(pending_.awaited_message.load(std::memory_order_relaxed));
    if (pending_.is_quiet()) [[likely]] {
      count_idle_poll();
      return Errc::not_done;
    }
    return attendant_.progress_and_take(queue, event);
  }
  // Where the caller will probably look for the next message. The thread that polls.
  void await_message(const std::byte* at) { pending_.awaited_message.store(at, std::memory_order_relaxed); }
  Errc wait(CompletionQueue& queue, std::optional<std::int64_t> deadline_ns) {
    return waits_.wait(queue, deadline_ns);
  }
  Result<std::uint32_t> wait_any(std::span<CompletionQueue* const> queues,
                                 std::optional<std::int64_t> deadline_ns, const StopWaiting& stop) {
    return waits_.wait_any(queues, deadline_ns, stop);
  }
  void ring_bell() { waits_.ring_bell(); }
  std::int64_t now_ns() const { return waits_.now_ns(); }

  // ---- operations (Initiator) ----
  Errc post(Endpoint& endpoint, const Request& request) { return initiator_.post(endpoint, request); }
  Errc post_checked(Endpoint& endpoint, const Request& request) {
    return initiator_.post_checked(endpoint, request);
  }
  Errc post_chain(Endpoint& endpoint, std::span<const ChainPart> parts, std::uint32_t flags, void* context) {
    return initiator_.post_chain(endpoint, parts, flags, context);
  }
  // Sends a packet to another process's match unit; `completion.listener` gets the answer. not_done: it is in
  // flight. Errors: no_resource (try again), unreachable, and those of connecting.
  Errc send_to_match_unit(ProcessName process, const wire::PacketHeader& header,
                          std::span<const std::byte> payload, const Completion& completion);
  static bool idle(const Endpoint& endpoint) { return endpoint.is_idle(); }
  bool block_transfer_is_short(std::uint64_t length, const CompletionQueue* queue) const {
    return router_.block_transfer_is_short(length, queue);
  }
  // No message was there: whatever is under way is moved along. not_done, or invalid_state (garbled).
  Errc find_no_message(Endpoint& endpoint) {
    if (pending_.is_quiet()) [[likely]]
      count_idle_poll();
    else
      (void)attendant_.progress(&endpoint);
    return messages_.find_none(endpoint);
  }
  // A PE's contribution to a reduction (CollectiveEngine::post).
  Errc join(Endpoint& endpoint, CeEdge& edge, const Request& request, const CeJoin& join) {
    return collective_.post(endpoint, edge, request, join);
  }
  // Writes the result that is awaited there, if everything is there that it takes. progress() does so too,
  // for all of them.
  void look_for_result(const std::uint64_t* result) {
    // Under virtual time that is progress()'s, at its place in the order of time.
    if (clock_ == nullptr) [[likely]]
      collective_.try_finish(result);
  }

  // ---- progress (Attendant) ----
  // Applies what arrived and continues what is under way. Returns whether anything may have come of it. Any
  // thread; cheap when there is nothing.
  bool progress() { return attendant_.progress(nullptr); }
  // The same after a look at `source` that found nothing (Clock::idle).
  bool progress(const void* source) { return attendant_.progress(source); }
  void hand_frames_back() { attendant_.hand_frames_back(); }
  bool serve() { return attendant_.serve(); }
  void peer_died(ProcessName process) { attendant_.peer_died(process); }
  std::uint64_t polls() const { return pending_.polls.value(); }  // by all its threads, so far

  // ---- what it was made with ----
  clock::Clock* clock() const { return clock_; }
  HazardBoard* hazard_board() const { return board_; }    // null: there is none
  bool has_faults() const { return faults_ != nullptr; }  // faults are asked for: no fast path
  const FaultCounters& fault_counters() const { return error_state(pending_.view).faults; }
  NicView view() const { return pending_.view; }
  wire::ProcessSlot self() const { return self_; }
  const Options& options() const { return options_; }

 private:
  void count_idle_poll() {
    if (pending_.polls.add()) [[unlikely]]
      attendant_.after_idle_polls();
  }
  void look_after_units();
  void close();

  Pending pending_;  // first: what a poll looks at
  HostServices& services_;
  const wire::ProcessSlot self_;
  const Options options_;
  clock::Clock* const clock_;
  HazardBoard* const board_;
  const std::unique_ptr<FaultUnit> faults_;  // null: nothing ever fails by itself
  ErrorLog errors_;
  Arena arena_;
  Ports ports_;
  EventQueues queues_;
  PeerTable peers_;
  HotMemory hot_;
  CounterPool counters_;
  RecordQueues record_queues_;
  DeviceRegisters registers_;
  ResourceUse resources_;
  TranslationTable translation_;
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
