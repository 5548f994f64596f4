// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/short_lock.hpp"
#include "emu/base/status.hpp"
#include "emu/clock/clock.hpp"
#include "emu/nic/collective/collective_engine.hpp"
#include "emu/nic/device/device_registers.hpp"
#include "emu/nic/device/resource_use.hpp"
#include "emu/nic/device/translation_table.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/events/counter.hpp"
#include "emu/nic/events/error_log.hpp"
#include "emu/nic/events/poll_count.hpp"
#include "emu/nic/events/ports.hpp"
#include "emu/nic/events/queues.hpp"
#include "emu/nic/events/record_queue.hpp"
#include "emu/nic/gate/options.hpp"
#include "emu/nic/gate/suspend.hpp"
#include "emu/nic/gate/triggered.hpp"
#include "emu/nic/initiator/bte_queue.hpp"
#include "emu/nic/initiator/endpoint.hpp"
#include "emu/nic/initiator/request.hpp"
#include "emu/nic/initiator/sequence.hpp"
#include "emu/nic/memory/registration_table.hpp"
#include "emu/nic/message/channel.hpp"
#include "emu/nic/message/datagram.hpp"
#include "emu/nic/state/access.hpp"
#include "emu/nic/state/arena.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/target/amo_cache.hpp"
#include "emu/nic/transport/inbound.hpp"
#include "emu/nic/transport/outstanding.hpp"
#include "emu/nic/transport/peer.hpp"
#include "emu/nic/transport/peers.hpp"
#include "emu/wire/host_wire.hpp"
#include "emu/wire/ring_wire.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace orrery::nic {

namespace match {
class PacketServer;
}

// The emulated NIC of one process: owns its units and applies their rules. Any number of them run in one
// process. The posting thread applies an operation to the target's state itself where it can reach that; else
// it travels as frames, and the target's polling threads apply it.
//
// Threads: post: one thread per endpoint and per queue of completions at a time, different ones in parallel,
// of one port too. poll and the queues: one thread per queue.
// register_region, deregister, create and destroy calls: any thread. serve(): the service thread.
// Invariants: (1) an operation that was accepted raises exactly the events it asked for, whatever happens to
// the peer; (2) data is visible before any event that tells of it; (3) no lock is held while user memory is
// touched, but the frame locks while a frame is applied. Locks: state/lock_rank.hpp. It lives no longer than
// what it is made with.
class Nic final : public wire::Sink {
 public:
  using Options = NicOptions;

  Nic(HostServices& services, NicView view, wire::ProcessSlot self, const Options& options);
  ~Nic();
  void end();  // nothing of it runs by itself any more; calls that other threads are in go on
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  // ---- ports and endpoints ----
  Port* open_port(std::uint16_t domain, std::uint32_t nic_address, std::uint32_t instance);
  void close_port(Port* port);
  std::uint32_t port_count() { return ports_.count(); }  // any thread, the next two too
  std::uint32_t queue_count() { return queues_.count(); }
  std::uint32_t block_transfers() const { return bte_.outstanding(); }
  // ---- memory ----
  // Makes [address, address + length) reachable by the domain's other ports, by pages. `queue`, if any, gets
  // an event for each operation that asks for a remote event. Not blocking but for system calls.
  // Errors: invalid_param (length 0, not mapped), permission (not writable and not kReadOnly),
  // no_resource (4,096 registrations are in use). `held`: in an entry that is held (registrations()).
  Result<MemKey> register_region(const Port& port, std::uint64_t address, std::uint64_t length,
                                 std::uint8_t flags, CompletionQueue* queue, const HeldEntry& held = {});
  // The same for a list of segments that are addressed as one, by offsets from 0.
  Result<MemKey> register_segments(const Port& port, std::span<const Segment> segments, std::uint8_t flags,
                                   CompletionQueue* queue);
  // The same for the whole address space, mapped or not, now and later: an access to what is not mapped, or
  // may not be written, ends in `bounds` for the process that asked. What is hot is moved into the memory
  // file by extents of 2 MiB, where the environment lets it (adoptable_around). Errors: no_resource.
  Result<MemKey> register_space(const Port& port, std::uint8_t flags, CompletionQueue* queue);
  // The program is about to take pages away, or their right to be written: none is reached directly from when
  // leave_pages() returns until left_pages(). Waits for peers as deregister(). Any thread; allocates nothing.
  ExtentMap::Token leave_pages(std::uint64_t begin, std::uint64_t end);
  void left_pages(ExtentMap::Token token) { registrations_.extents().left(token); }
  // After it returns no peer touches the memory any more, and the key is refused everywhere. Waits for peers
  // that are in the middle of an access, at most drain_limit_ns; a peer that is stalled longer than that is
  // cut off from the pages instead. Errors: invalid_handle.
  Status deregister(const MemKey& key);
  // Moves whole pages of ours into the memory file; `registered`: as long as a registration has some of them.
  // Service thread only. Errors: HostServices::adopt's; timeout where none has any more.
  Status adopt_range(std::uint64_t begin, std::uint64_t end, bool registered);
  // Whether `key` is ours and covers the range. Errors: invalid_handle, protection, permission, bounds.
  Errc check_local(const Port& port, const MemKey& key, std::uint64_t address, std::uint64_t length,
                   bool writes) const {
    if (!key.valid() || key.index >= kMaxRegions || key.process != self_) [[unlikely]]
      return Errc::invalid_handle;
    const MrtEntry& entry = view_.region(key.index);
    const std::uint64_t word = entry.control.load(std::memory_order_acquire);
    if (((control::flags(word) ^ key.flags) & kSegmented) != 0) [[unlikely]]
      return Errc::invalid_handle;
    return check_access(entry, word, key.generation, port.domain, address, length, writes);
  }

  // What is registered here under a number (state/mdh.hpp), and what an address means there.
  MemKey own_by_number(const Port& port, const MemKey& key, std::uint64_t* address) const;

  void flush_amo_cache() { flush_amo_cache(0, UINT64_MAX); }  // any thread; waits for a frame's application
  AmoCacheCounters amo_cache_counters() const { return AmoCache(view_).counters(); }
  // ---- queues ----
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
    __builtin_prefetch(awaited_message_.load(std::memory_order_relaxed));
    if (has_nothing_to_move()) [[likely]] {
      if (polls_.add()) [[unlikely]]
        after_idle_polls();
      return Errc::not_done;
    }
    return progress_and_take(queue, event);
  }
  // Where the caller will probably look for the next message. The thread that polls.
  void await_message(const std::byte* at) { awaited_message_.store(at, std::memory_order_relaxed); }
  // Sleeps until the queue has an event or an overrun, or `deadline_ns` passes (none: never). ok, timeout.
  Errc wait(CompletionQueue& queue, std::optional<std::int64_t> deadline_ns);

  // Sleeps until one of the queues has an event or an overrun; returns its place in the list, takes nothing.
  // `stop` is called now and then, and after ring_bell(). May run beside threads that use the queues.
  // Errors: timeout, terminated (stop returned true). REQUIRES: the queues live until it returns.
  using StopWaiting = std::function<bool()>;
  Result<std::uint32_t> wait_any(std::span<CompletionQueue* const> queues,
                                 std::optional<std::int64_t> deadline_ns, const StopWaiting& stop);
  void hand_frames_back();  // a thread that polled is about to sleep: the service thread takes frames in
  void ring_bell();         // wakes every sleeper in wait_any and wait_counters to look again. A system call

  CounterPool& counters() { return counters_; }
  TriggerUnit& triggers() { return triggers_; }
  RecordQueues& record_queues() { return record_queues_; }
  // Adds to a counter of ours, and runs what that triggers unless `within` a call of the NIC's (a Listener):
  // the next progress() does then. Any thread. Errors: invalid_handle.
  Errc add_to_counter(CounterName name, CounterValue by, bool within);
  // The same for a process of this host: what that triggers is carried out here where memory allows, else by
  // its owner. Errors: unsupported (its NIC is not mapped here), those of connecting.
  Errc add_to_counter(ProcessName owner, CounterName name, CounterValue by);
  // A put that waits for a counter; its end adds `by` to `counter`, or a failure. Others can carry it out if
  // it has no flags and `local` names the source. REQUIRES: the endpoint lives until then. Errors:
  // TriggerUnit::post()'s, invalid_param (it asks for local events).
  Status post_triggered(CounterName trigger, std::uint64_t threshold, Endpoint& endpoint,
                        const Request& request, CounterName counter, CounterValue by);
  // Sleeps until one of the tests is met; as wait_any, `value` its counts. Errors: invalid_handle too.
  Result<std::uint32_t> wait_counters(std::span<const CounterTest> tests,
                                      std::optional<std::int64_t> deadline_ns, const StopWaiting& stop,
                                      CounterValue* value);

  // ---- operations ----
  // Starts one operation. ok: accepted, and events report all that follows. Otherwise nothing happened:
  // invalid_state (endpoint not bound), no_resource (transactions of the queue used up), invalid_param. A
  // remote key that leads nowhere is accepted and ends in an event: invalid_handle (never was a key, or of a
  // process behind another NIC address), unreachable (its process is gone). Never blocks, except for the
  // first post to a peer, which maps it.
  Errc post(Endpoint& endpoint, const Request& request);
  // The same for a caller that tried the fast path (fast_path.hpp) itself.
  Errc post_checked(Endpoint& endpoint, Request request);
  static bool idle(const Endpoint& endpoint);  // all that was posted to it is done. The thread that uses it
  // Starts several operations that end in one completion, in `endpoint`'s queue; it says the first error.
  // `flags`: kLocalEvent, kGlobalEvent. Nothing happened unless ok. May wait for answers to its own earlier
  // parts when it is longer than the packets that a NIC can have.
  Errc post_chain(Endpoint& endpoint, std::span<const ChainPart> parts, std::uint32_t flags, void* context);

  // A transaction that its owner adds operations to and asks for: open_sequence() (null: all in use), then
  // post_in() for each (ok: accepted, errors are the sequence's; no_resource: try again; invalid_state), then
  // end_sequence(), then test_sequence() by its name until it is not `not_done`: ok, the name is free again
  // and `*status` says the first error; invalid_param, there is none of that name. Events in `request` are
  // ignored but kRemoteEvent. Not blocking.
  Sequence* open_sequence();
  Errc post_in(Sequence& sequence, Endpoint& endpoint, const Request& request);
  static void end_sequence(Sequence& sequence) { (void)sequence.take_off(); }
  Errc test_sequence(std::uint32_t name, Errc* status);
  bool waits_for_room(const Endpoint& endpoint);  // an operation to its peer is not all in frames yet
  void ask_for_adoption(const Endpoint& endpoint, const MemKey& key);  // of a key's memory, by its owner
  DatagramUnit& datagrams() { return datagrams_; }
  // Carries out packets of Verb::match from now on; lives as long as the NIC.
  void serve_match_unit(match::PacketServer& server) { match_server_.store(&server); }
  // Sends such a packet; `completion.listener` gets the answer. not_done: it is in flight.
  // Errors: no_resource (try again), unreachable, and those of connecting.
  Errc send_to_match_unit(ProcessName process, const wire::PacketHeader& header,
                          std::span<const std::byte> payload, const Completion& completion);
  ChannelUnit& channels() { return channels_; }
  // ---- short messages; message.hpp has the calls ----
  // Opens the endpoint's connection: `local` is our mailbox, `remote` the peer's, both `shape.bytes()` long.
  // The peer may do so later, or have done it before. May map the peer. Errors: invalid_state (not bound, or
  // open already), invalid_param (impossible shape, a key of segments or of nothing), check_local's.
  Errc open_mailbox(Endpoint& endpoint, const MailboxShape& shape, const MailboxPlace& local,
                    const MailboxPlace& remote);
  Errc send_message_slowly(Endpoint& endpoint, std::span<const std::byte> header,
                           std::span<const std::byte> data, std::uint32_t id, std::uint8_t tag);
  Errc find_no_message(Endpoint& endpoint);
  void send_credit_slowly(Endpoint& endpoint);

  // A PE's contribution to a reduction; `request` says which events are wanted when it has been taken. ok:
  // accepted; no_resource: as CollectiveEngine::join, or the queue's transactions are used up; invalid_param.
  Errc join(Endpoint& endpoint, CeEdge& edge, Request request, const CeJoin& join);
  // Writes the result that is awaited there, if everything is there that it takes. progress() does so too,
  // for all of them.
  void look_for_result(const std::uint64_t* result) {
    // Under virtual time that is progress()'s, at its place in the order of time.
    if (clock_ == nullptr) [[likely]]
      collective_.try_finish(result);
  }
  CollectiveEngine& collective() { return collective_; }

  // ---- suspension ----
  // Stops the traffic of a domain in the NICs of these processes: each starts nothing new, and all that it
  // had started ends. Their programs run on until their next operation, which waits. ok: all of them are
  // quiet; timeout: some are not, and all go on as if nothing had been; invalid_param: no such domain.
  // Blocks, at most until the deadline. Any thread that has nothing under way.
  Errc suspend(std::span<const ProcessName> processes, std::uint32_t domain, std::int64_t deadline_ns);
  // Resumes them. Errors: invalid_state (none of them was suspended), invalid_param. Does not block.
  Errc resume(std::span<const ProcessName> processes, std::uint32_t domain);

  // ---- progress ----
  // Applies what arrived and continues what is under way. Returns whether anything may have come of it. Any
  // thread; cheap when there is nothing.
  bool progress() { return progress(nullptr); }
  // The same after a look at `source` that found nothing (Clock::idle).
  bool progress(const void* source);
  // The service thread's share; returns whether it has to be called again soon, without being rung.
  bool serve();
  static constexpr std::int64_t kServicePeriodNs = 200'000;
  void peer_died(ProcessName process);  // its outstanding operations end in `unreachable`

  std::int64_t now_ns();  // what deadlines of waits are in: the clock's time, or CLOCK_MONOTONIC
  clock::Clock* clock() const { return clock_; }
  HazardBoard* hazard_board() const { return board_; }    // null: there is none
  bool has_faults() const { return faults_ != nullptr; }  // faults are asked for: no fast path
  const FaultCounters& fault_counters() const { return error_state(view_).faults; }
  void collect_refusals();  // tells the error log of refused frames that had no answer. Any thread
  // ---- the wire between hosts (wire_frames.cpp) ----
  wire::Sink& wire_sink() { return wire_end_; }  // what a HostWire is made with
  wire::PeerLoss& wire_loss() { return wire_end_; }
  void use_wire(wire::HostWire& wire);  // from now on; it outlives the NIC's use
  // Errors: HostWire::add_peer's.
  Status add_wire_peer(wire::ProcessSlot slot, std::span<const std::byte> address);
  void poll_wire(bool must_look);  // any thread; returns at once while another one polls, unless `must_look`
  bool serve_wire();               // by the service thread; returns whether more is to be done soon
  // Whether the service thread may sleep on the wire's descriptor. Lowers `wakes_at_ns` to when it must look.
  bool may_sleep_on_wire(std::atomic<std::int64_t>& wakes_at_ns);
  // Service thread: whether the program has polled since the last serve(), and so moves the wire itself.
  bool program_polls() const { return polls_.value() != polls_seen_; }
  std::uint64_t polls() const { return polls_.value(); }  // by all its threads, so far
  bool wire_is_drained();  // whether all that was sent has been acknowledged. Moves it along
  // Zeroed room in the arena for an API's unit, for good: its offset, or 0.
  std::uint64_t reserve_arena(std::uint64_t bytes) { return arena_.take(bytes, Arena::Use::unit); }
  RegistrationTable& registrations() { return registrations_; }
  ErrorLog& errors() { return errors_; }
  DeviceRegisters& registers() { return registers_; }
  ResourceUse& resources() { return resources_; }
  TranslationTable& translation() { return translation_; }
  NicView view() const { return view_; }
  wire::ProcessSlot self() const { return self_; }
  const Options& options() const { return options_; }
  // Whether a block transfer may be done, and its event raised in `queue`, at once.
  bool block_transfer_is_short(std::uint64_t length, const CompletionQueue* queue) const {
    return length < options_.bte_crossover && (bte_.untouched() || bte_.nothing_precedes(queue));
  }
  void deliver(const wire::Packet& packet) override;

 private:
  friend class BteQueue;
  friend class TimedOp;
  friend class TimedJoin;
  friend class CollectiveEngine;

  // The NIC as a HostWire sees it.
  struct WireEnd final : wire::Sink, wire::PeerLoss {
    Nic& nic;
    explicit WireEnd(Nic& n) : nic(n) {}
    void deliver(const wire::Packet& packet) override { nic.deliver_from_wire(packet); }
    void lost(wire::ProcessSlot peer) override { nic.wire_losses_.push_back(peer); }
  };

  // nic.cpp
  Result<MemKey> insert_region(RegistrationTable::Entry entry);
  void adopt_region(std::uint32_t index);
  void adopt_extent(std::uint64_t page);
  void watch_region(std::uint32_t index);
  void flush_amo_cache(std::uint64_t begin, std::uint64_t end);
  void cut_off(std::uint64_t begin, std::uint64_t end);
  void await_switch(std::uint32_t region);

  // initiate.cpp, by_number.cpp
  Errc find_bound_process(Endpoint& endpoint, const MemKey& remote, Peer** found);
  Errc name_by_number(Endpoint& endpoint, MemKey* key, std::uint64_t* address, std::uint64_t* sync_address);
  Errc post_by_number(Endpoint& endpoint, const Request& request);
  Errc find_peer(Endpoint& endpoint, const MemKey& remote);
  static void address(Endpoint& endpoint, Request* request);
  Teller teller_of(const Request& request) const;
  Errc try_direct(const Request& request, std::uint32_t hazard_slot, Endpoint* keep_in = nullptr);
  Errc execute_direct(const Request& request, std::uint64_t word, std::uint32_t hazard_slot,
                      Endpoint* keep_in);
  void keep_grant(Endpoint& endpoint, const Request& request, std::uint64_t word, AddressMap& memory) const;
  bool must_follow(const Request& request);
  Errc post_part(Sequence& sequence, Endpoint& endpoint, Request part);
  bool must_go_to_engine(const Request& request) const;
  Begun start(Endpoint& endpoint, const Request& request);
  Begun route(const Request& request, std::uint32_t hazard_slot, Endpoint* poster = nullptr);
  Errc try_here(const Request& request, std::uint32_t hazard_slot, Endpoint* poster, bool may_attach);
  bool attach_pays(const Request& request, const Endpoint* poster) const;
  Errc try_attach(const Request& request, std::uint32_t hazard_slot);
  Errc transfer_chunk(const Request& chunk, const Request& whole);
  void count_hit(Peer& peer, const MemKey& key, std::uint64_t address);
  void count_extent_hit(Peer& peer, std::uint64_t address);
  struct LocalPiece {
    std::byte* at = nullptr;  // null: the registration is gone
    std::uint64_t bytes = 0;  // contiguous from there
  };
  LocalPiece local_piece(const MemKey& key, std::uint64_t offset) const;
  bool gather(const MemKey& key, std::uint64_t offset, std::span<std::byte> bytes) const;
  bool scatter(const MemKey& key, std::uint64_t offset, std::span<const std::byte> bytes) const;
  wire::PacketHeader header_for(const Request& request) const;
  // timed.cpp
  void post_timed(Endpoint& endpoint, const Request& request);
  clock::Operation operation_of(const Request& request) const;
  Errc apply_now(Request request);
  Errc join_timed(Request& request, const Port& port, CeEdge& edge, const CeJoin& join);
  void progress_timed(const void* source);
  Errc wait_timed(std::span<CompletionQueue* const> queues, std::optional<std::int64_t> deadline_ns,
                  std::uint32_t* found);

  // triggered_put.cpp, channel.cpp
  Errc put_for(Peer& owner, const TriggerRecord& record, bool* unknown);
  Errc put_of_ours(const TriggerRecord& record);
  Errc send_direct(const Request& request, std::uint32_t hazard_slot);

  // fault.cpp
  Begun defer_or_fail(Endpoint& endpoint, const Request& request);
  FaultOutcome meet_faults(const Endpoint& endpoint, const Request& request);
  Errc hold_back(const Request& request, std::int64_t delay_ns);
  Errc hold(const Request& request);
  bool run_delayed();
  bool carry_out(Delayed& delayed);
  void count_refusal(const wire::PacketHeader& header, Errc status);
  void look_for_refusals(Peer& peer);

  // suspend.cpp
  bool attend_suspension();
  bool is_quiet(std::uint16_t domain);
  void want_suspended(const Peer& peer, std::uint32_t domain, bool on);

  // progress.cpp
  bool move_along();
  Errc send_frames(const Request& request, Endpoint* silent_by = nullptr);
  Errc send_packet(Peer& peer, const wire::PacketHeader& header, std::span<const std::byte> payload,
                   const Completion& completion);
  bool pump(Peer& peer);
  bool drain_predecessors_responses(Peer& peer);
  Errc apply(Parts& from, const wire::Packet& packet, std::uint32_t max_part, std::span<std::byte> buffer,
             std::span<std::byte>* out);
  bool try_send_unacknowledged(Endpoint& endpoint, const Request& request);
  static void note_unacknowledged(Peer& peer, Endpoint& endpoint);
  void keep_frame_grant(Endpoint& endpoint, const Request& request);
  Errc send_granted_frame(Endpoint& endpoint, const Request& request);
  bool take_short_put(Inbound& from, const wire::ShortFrame& frame);
  void settle_unacknowledged(Peer& peer);
  void take_response(Peer& peer, const wire::Packet& packet);
  int take_responses(Peer& peer);
  void end_outstanding(std::uint32_t name, Outstanding& outstanding);
  static void keep_rest(Outstanding& outstanding);
  bool has_unsent(const Peer& peer) const;
  void send_the_rest();
  void close();
  std::vector<std::uint32_t> open_flights();
  void drop_ended_flights(std::vector<std::uint32_t>& names);
  void open_lanes(Peer& peer);
  bool poll_responses();
  bool poll_requests(bool must_look);
  // Without the lock: a later frame is found by the next look. Acquire: pairs with find_lanes.
  bool nothing_arrived() const {
    if (next_frames_for_.load(std::memory_order_acquire) !=
        view_.service().lane_changes.load(std::memory_order_relaxed))
      return false;
    for (const auto& next : next_frames_) {
      const std::byte* const line = next.load(std::memory_order_relaxed);
      if (line == nullptr) return true;
      if (wire::RingConsumer::holds_frame(line)) return false;
    }
    return true;
  }
  Errc progress_and_take(CompletionQueue& queue, Event* event);
  void after_idle_polls();
  bool has_nothing_to_move() const {
    return !always_moves_.load(std::memory_order_relaxed) &&
           outstanding_count_.load(std::memory_order_relaxed) == 0 &&
           (view_.service().lane_changes.load(std::memory_order_relaxed) == 0 || nothing_arrived()) &&
           !collective_.active();
  }
  void find_lanes();
  void refuse(Inbound& from);
  void fail_flights(Peer& peer, Errc status);
  void deliver_from_wire(const wire::Packet& packet);
  void adopt_wanted();

  // What a poll that finds nothing looks at, in two lines.
  alignas(kCacheLine) const NicView view_;
  std::atomic<bool> always_moves_;  // there is a clock, a wire, or faults: polls look further
  std::atomic<std::uint32_t> outstanding_count_{0};  // counted under frames_mu_
  PollCount polls_;
  std::atomic<const std::byte*> awaited_message_{nullptr};
  // Where the next frame of each of the first lanes will begin. Written under requests_mu_, read without.
  std::atomic<std::uint32_t> next_frames_for_{0};  // lane_changes that next_frames_ covers; 0: not all
  std::array<std::atomic<const std::byte*>, 8> next_frames_{};

  HostServices& services_;
  const wire::ProcessSlot self_;
  const Options options_;
  clock::Clock* const clock_;
  HazardBoard* const board_;
  const std::unique_ptr<class TimedOps> timed_;  // null without a clock
  IdentityMap identity_;
  ErrorLog errors_;
  Arena arena_;
  RegistrationTable registrations_;
  Ports ports_;
  EventQueues queues_;
  PeerTable peers_;

  RegistrationTable::Range moving_, switching_;  // being adopted; those moved right now. By moving_mu_
  Lock<LockRank::moving> moving_mu_;
  std::condition_variable_any switched_;  // with moving_mu_

  // Frames. requests_mu_: the inbound side. frames_mu_: the outbound side with its outstanding requests.
  QuickLock<LockRank::requests> requests_mu_;
  std::array<Inbound, kMaxProcesses> inbound_;  // guarded by requests_mu_
  std::vector<std::uint16_t> lanes_;            // those of inbound_ that were opened, guarded by requests_mu_
  std::uint32_t lanes_seen_ = 0;                // lane_changes as of lanes_, guarded by requests_mu_
  Lock<LockRank::shared_hazard> shared_hazard_mu_;  // held for an access by threads that share a hazard word
  QuickLock<LockRank::frames> frames_mu_;
  std::vector<Peer*> lane_peers_;  // peers with open lanes, guarded by frames_mu_
  // The wire between hosts. It is called under frames_mu_, and takes requests_mu_ for what it delivers.
  std::atomic<wire::HostWire*> wire_{nullptr};
  WireEnd wire_end_{*this};
  std::vector<Peer*> wire_peers_;                // peers that it has connected, guarded by frames_mu_
  std::vector<wire::ProcessSlot> wire_losses_;   // not yet told to the service thread, guarded by frames_mu_
  std::array<Parts, kMaxProcesses> wire_parts_;  // guarded by requests_mu_
  SequenceTable sequences_;                      // own lock
  OutstandingTable outstanding_;                 // guarded by frames_mu_
  const std::unique_ptr<PayloadRoom> payloads_{new PayloadRoom};
  RecordQueues record_queues_{
      view_,
      {[this](std::uint32_t depth) { return create_queue(depth, 0); },
       [this](CompletionQueue* queue) { return destroy_queue(queue); },
       [this](std::uint64_t n) { return arena_.take(n, Arena::Use::records); },
       [this](std::uint64_t at, std::uint64_t n) { arena_.give_back(at, n, Arena::Use::records); }}};
  CounterPool counters_{view_};
  TriggerUnit triggers_{view_,
                        {[this] { always_moves_.store(true, std::memory_order_relaxed); },
                         [this](const TriggerRecord& record) { return put_of_ours(record); }}};
  const std::unique_ptr<FaultUnit> faults_;  // null: nothing ever fails by itself
  DelayLine delays_;
  DeviceRegisters registers_;
  ResourceUse resources_;
  TranslationTable translation_;
  std::atomic<match::PacketServer*> match_server_{nullptr};
  DatagramUnit datagrams_;
  ChannelUnit channels_;
  CollectiveEngine collective_;
  BteQueue bte_;  // its thread uses everything above: last in, first out
  PollStreak streak_;
  std::uint64_t polls_seen_ = 0;                              // service thread
  int idle_ticks_ = 0;                                        // service thread
  std::array<std::uint64_t, kMaxSuspendable / 64> marked_{};  // domains in suspension; service thread
  std::uint32_t suspension_seen_ = 0;  // suspension_changes that marked_ is of; service thread
};

}  // namespace orrery::nic
