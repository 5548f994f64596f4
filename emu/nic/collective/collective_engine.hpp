// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/biased_lock.hpp"
#include "emu/base/status.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/collective/collective_combine.hpp"
#include "emu/nic/collective/collective_packets.hpp"
#include "emu/nic/collective/collective_state.hpp"
#include "emu/nic/events/completion.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/state/mover.hpp"
#include "emu/nic/state/request.hpp"
#include "emu/nic/transport/peer.hpp"
#include "emu/nic/transport/peers.hpp"
#include "emu/nic/transport/pending.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace orrery::nic {

class CompletionQueue;
struct Endpoint;
class FaultUnit;
struct Port;
class Ports;
class Regions;
struct Request;
class Transport;

// What a VCE does besides reducing. DO NOT CHANGE THE VALUES: they are in shared memory.
enum CeModes : std::uint32_t {
  kCeRounding = 3,    // Rounding
  kCeOnComplete = 4,  // an event in the VCE's queue for each reduction that is complete
  kCeOnError = 8,     // and for each that failed
  // Not asked for, but in the shared word:
  kCeUpByPacket = 16,  // the parent's state cannot be looked at from the owner's host: `results` has its word
  kCeOwnerActs = 32,   // the owner has to do something when a contribution comes: it is rung
};
// Contributions wake the owner.
inline constexpr std::uint32_t kCeWakes = kCeOnComplete | kCeOnError | kCeUpByPacket | kCeOwnerActs;

// Names a VCE to all processes behind its NIC address: process slot << 4 | which of its VCEs, 14 bits.
constexpr std::uint32_t ce_id(wire::ProcessSlot slot, std::uint32_t vce) {
  return std::uint32_t{slot} << 4 | vce;
}

// The process that contributes as a child of a VCE, in the VCE's state; 0: none yet.
//   63 there | 47..16 generation of the process | 15..0 its slot
namespace ce_claim {
constexpr std::uint64_t make(ProcessName process) {
  return 1ull << 63 | std::uint64_t{process.generation} << 16 | process.slot;
}
constexpr ProcessName process(std::uint64_t claim) {
  return {static_cast<wire::ProcessSlot>(claim & 0xffff), static_cast<std::uint32_t>(claim >> 16)};
}
}  // namespace ce_claim

// The words of a result in the poster's memory: control, result 1, result 2.
//   control: 63 there | 62..57 CeStatus | 56..53 CeException | 52..0 reduction id
namespace ce_result {
constexpr std::uint64_t make(CeStatus status, std::uint8_t exceptions, std::uint64_t reduction) {
  return 1ull << 63 | (static_cast<std::uint64_t>(status) & 0x3f) << 57 |
         static_cast<std::uint64_t>(exceptions & 0xf) << 53 | (reduction & ((1ull << 53) - 1));
}
constexpr bool there(std::uint64_t control) { return control >> 63 != 0; }
constexpr std::uint8_t status(std::uint64_t control) { return control >> 57 & 0x3f; }
constexpr std::uint8_t exceptions(std::uint64_t control) { return control >> 53 & 0xf; }
constexpr std::uint64_t reduction(std::uint64_t control) { return control & ((1ull << 53) - 1); }
}  // namespace ce_result

// The way from a VCE to the root of its tree, as far as it is known here.
struct CePath {
  static constexpr std::uint32_t kMaxDepth = 64;
  struct Level {
    const Peer* owner = nullptr;
    VceState* vce = nullptr;
    std::uint16_t generation = 0;
    std::uint32_t child_below = 0;  // which child the level below is
  };
  std::array<Level, kMaxDepth> levels;
  std::atomic<std::uint32_t> count{0};  // levels[0..count) do not change
  std::atomic<bool> whole{false};       // the last level is the root
  std::atomic<bool> by_packet{false};   // the last level's parent is reached by packets
};

// An endpoint's place in a tree: which VCE it leads to, and as which of its children. The client's thread.
struct CeEdge {
  bool set = false;
  bool is_vce = false;
  std::uint32_t nic_address = 0;
  std::uint32_t id = 0;  // ce_id
  std::uint32_t child = 0;
  CePath* path = nullptr;  // once found
  Peer* owner = nullptr;   // instead of a path: the VCE's owner, which is reached by packets
  // The fast path (collective_short.cpp): the VCE's control word that everything was checked with, and which
  // record the last contribution of each lane took.
  static constexpr std::uint8_t kNoRecord = 0xff;
  std::uint64_t control = 0;
  std::array<std::uint8_t, kCeLanes> records = no_records();
  static constexpr std::array<std::uint8_t, kCeLanes> no_records() {
    std::array<std::uint8_t, kCeLanes> none{};
    for (auto& one : none) one = kNoRecord;
    return none;
  }
  // Under a clock, bit i: a contribution for lane i is in flight (CollectiveEngine::reserve). Through
  // atomic_ref: it may end on the clock's thread.
  std::uint32_t under_way = 0;
};

// One contribution of a PE.
struct CeJoin {
  CeValue value;
  std::uint8_t exceptions_wanted = 0;  // CeException: which the result may tell of
  std::uint64_t* result = nullptr;     // three words of registered memory of ours
  std::uint64_t pending = 0;           // its first word until the result comes; top bit 0
  MemKey key;                          // its registration
};

// One of the usual kind: the result tells of no exceptions. In words that are stored and loaded whole.
struct CeShortJoin {
  std::uint64_t operand[2];
  std::uint64_t reduction;
  std::uint64_t meta;     // ce_meta() of it
  std::uint64_t* result;  // as in CeJoin
  std::uint64_t pending;
  // Of the result's registration: its entry, and the control word with which it was found to allow the
  // result.
  const MrtEntry* entry;
  std::uint64_t entry_control;
};

// The collective engine of one NIC: the VCEs that this process owns, and the reductions that it waits for.
// The contributions of a tree stand in the segments of its VCEs' owners (collective_state.hpp). A waiting PE
// reads them, computes the result, passes it on to the parent's slot when that is still empty, and reads
// there: the last PE to arrive finds the whole tree's contributions and is done at once. A PE that neither
// polls nor sleeps in a wait gets its result from its service thread.
//
// Threads: create .. join: the thread that uses the port. progress(): any. serve(), peer_died(): the service
// thread.
// Invariants: (1) a record is looked at by one thread at a time; (2) paths live as long as the engine; (3)
// mu_ is not held while a peer is connected to.
// Usage: auto vce = engine.create(port);  ...  engine.join(port, edge, join);
class CollectiveEngine final : public Listener {
 public:
  static constexpr std::uint32_t kRecords = 64;  // reductions that a process may have outstanding

  // What it needs of its NIC; all of it outlives the engine.
  struct Needs {
    HostServices& services;
    Pending& pending;
    wire::ProcessSlot self;
    PeerTable& peers;
    Ports& ports;
    Transport& transport;
    Regions& regions;
    Mover& mover;
    FaultUnit* faults;  // null: nothing ever fails by itself
    bool by_packets;    // trees of several processes use packets alone, as between hosts
  };
  explicit CollectiveEngine(const Needs& needs);
  ~CollectiveEngine();
  CollectiveEngine(const CollectiveEngine&) = delete;
  CollectiveEngine& operator=(const CollectiveEngine&) = delete;

  // ---- VCEs of ours ----
  // Index of a new VCE. Errors: no_resource.
  Result<std::uint32_t> create(const Port& port);
  // Sets it up in its tree: children at least one, each with its own number; `parent` null at the root. Doing
  // it again starts its reductions anew. Connects to the parent's owner; may block as a first post may.
  // Errors: invalid_param (children, or a parent that is no VCE), unreachable and those of connecting.
  Errc configure(std::uint32_t vce, std::span<const CeEdge* const> children, const CeEdge* parent,
                 CompletionQueue* queue, std::uint32_t modes);
  // Reductions that are under way at it end in `unexpected`.
  void destroy(std::uint32_t vce);

  // ---- PEs ----
  // Tells the VCE at the other end which process we are, when it is reachable already; with `instance`, which
  // the edge's endpoint is bound to, only if its owner is the process that has opened that, and not this one.
  // May block as a first post may.
  void attach(const Port& port, CeEdge& edge, std::optional<std::uint32_t> instance = {});
  // Contributes. The result comes into join.result, some time before it the words are 0. ok: accepted;
  // no_resource: kRecords are outstanding, or one in that lane; else refused, and `result` says why at once.
  // REQUIRES: edge is set and leads to a VCE.
  Errc join(const Port& port, CeEdge& edge, const CeJoin& join);
  // The same as a post: `request` says which events are wanted when the contribution has been taken. Under a
  // clock it arrives when the machine would have the result were it the last. ok: accepted; no_resource: as
  // join(), or the queue's transactions are used up; invalid_param.
  Errc post(Endpoint& endpoint, CeEdge& edge, Request request, const CeJoin& join);
  // The same for what was allowed before: through this edge, in this lane, with nothing changed since. False:
  // nothing happened, post() says what there is to say.
  bool try_join(Port& port, CeEdge& edge, const CeShortJoin& join);
  // Writes the result that is awaited there, if everything is there that it takes. progress() does so too,
  // for all of them.
  void look_for_result(const std::uint64_t* result) {
    // Under virtual time that is progress()'s, at its place in the order of time.
    if (clock_ == nullptr) [[likely]]
      try_finish(result);
  }
  // Keeps room for a join that comes later, so that it is never refused for want of room: then no caller
  // could try again. False: as no_resource of join(). Else arrived() once the join was made, or never will
  // be.
  bool reserve(CeEdge& edge, std::uint64_t reduction);
  void arrived(CeEdge& edge, std::uint64_t reduction);
  // The same for a contribution that was lost on its way: the tree is broken, and its result is the error.
  void lose(const Port& port, CeEdge& edge, const CeJoin& join);
  // No caller waits any more for what was posted through `port`.
  void forget(const Port& port);

  // Returns when no thread writes a result any more into memory that was deregistered before the call.
  void settle();

  // Whether progress() may have anything to do.
  bool active() const {
    return used_.load(std::memory_order_relaxed) != 0 ||
           arrivals_count_.load(std::memory_order_relaxed) != 0 || waits_for_packets();
  }
  // Finishes what can be finished.
  void progress() {
    move_packets();
    look(false);
  }
  // The same at a point of virtual time, and the queues of our VCEs get their events: from the program's
  // thread, which has the turn, and not from the service thread, which would come in between.
  void progress_in_turn();
  // As progress(), and the owner's duties. Returns whether it wants to be called again soon.
  bool serve();
  // The same, now and then, for reductions that no other thread looks at. False: no need for a while.
  bool heartbeat();
  // To be called when it was stopped.
  void heart_stopped();
  void peer_died(ProcessName process);

  // ---- packets (collective_packets.cpp) ----
  // Puts a join or release down; progress() and serve() do what it says. Any thread; only a lock of its own
  // is taken, for a moment. Errors: no_resource (too many wait).
  Errc take(const wire::PacketHeader& header);
  // A packet of ours has been answered, or never will be. As take().
  void ended(const Completion& completion, const Ending& ending) override;

 private:
  // One reduction that a thread of this process waits for.
  struct alignas(kCacheLine) Record {
    BiasedLock lock;                 // held by the thread that looks at it; bound to the one that joins
    std::atomic<bool> armed{false};  // it is waited for; changed by the lock's holder
    // Where the contribution stands that was missing at the last look, and its tag when it is there: while it
    // is missing no thread needs the rest of the record.
    std::atomic<const std::atomic<std::uint64_t>*> missing{nullptr};
    std::atomic<std::uint64_t> missing_tag{0};
    std::atomic<std::uint32_t> peeks{0};                 // since it was joined, for nothing
    std::atomic<std::uint32_t> service_looks{0};         // since it was joined
    std::atomic<const std::uint64_t*> awaited{nullptr};  // join.result
    const Port* port = nullptr;                          // null: an owner's look at its own VCE
    CePath* path = nullptr;
    // Without a path: contributed by packet to this process's VCE, and ends when its release comes.
    const Peer* owner = nullptr;
    std::uint32_t edge_id = 0;
    std::uint16_t serial = 0;
    std::uint64_t turn = 0;
    std::uint32_t lane = 0;
    std::uint32_t child = 0;
    std::uint32_t level =
        0;  // how far it was followed: contributions of children below `next` are in `value`
    std::uint32_t next = 0;
    bool any = false;
    CeValue value;
    CeJoin join;
    // The fast path. What the last join on the slow path found: the VCE of the path's first level and its
    // control word, the slots of the lane by parity, and the children of a VCE that is the whole tree and
    // rounds to nearest; 0: another tree. While the VCE's control word is the same, so is the rest.
    VceState* vce = nullptr;
    std::uint64_t control = 0;
    CeSlot* slots[2] = {};
    std::uint32_t children = 0;
    bool usual = false;               // the present join was a short one, in such a tree
    std::uint64_t meta = 0;           // of it
    const MrtEntry* entry = nullptr;  // as CeShortJoin; null: a join on the slow path, whose `join` has a key
    std::uint64_t entry_control = 0;
  };
  // A VCE of ours.
  struct Owned {
    bool used = false;
    const Port* port = nullptr;
    CompletionQueue* queue = nullptr;
    std::uint32_t modes = 0;
    CePath* path = nullptr;
    bool told_parent = false;  // that it is broken
    // A parent that is reached by packets; null: it is not, or there is none.
    Peer* up_owner = nullptr;
    std::uint32_t up_id = 0;
    std::uint32_t up_child = 0;
    std::array<std::uint64_t, kCeLanes> sent_up{};  // turns that it was sent
    std::array<std::uint64_t, kCeLanes> seen{};     // turns that the queue was told of
  };

  // A child of one of our VCEs that contributed by packet and waits for the release.
  struct Waiter {
    wire::ProcessSlot source = 0;
    ce_packet::Token to;
    std::uint32_t vce = 0;
    std::uint16_t generation = 0;
    std::uint32_t lane = 0;
    std::uint64_t turn = 0;
    std::optional<CeValue> refused;  // it is told this, whatever the reduction comes to
  };
  struct Arrival {
    wire::PacketHeader header;
    Errc failed = Errc::ok;  // else it is one of ours, which got nowhere
  };

  bool counts_time() const;
  // Whether a child or the parent of a VCE of ours is reached by packets, and may wait for one.
  bool waits_for_packets() const {
    return waiter_count_.load(std::memory_order_relaxed) != 0 ||
           up_by_packet_.load(std::memory_order_relaxed) != 0;
  }
  // What the owner of a VCE owes others, by a thread of the program: one that polls is there before the
  // service thread.
  void move_packets() {
    (void)handle_packets(false);
    if (up_by_packet_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      send_up_all();
  }
  void try_finish(const std::uint64_t* result);
  void look(bool service);
  void look_at(Record& record, bool service);
  enum class ShortLook : std::uint8_t { done, waits, unusual };
  static bool is_missing(const Record& record) {
    const auto* const missing = record.missing.load(std::memory_order_relaxed);
    return missing != nullptr &&
           missing->load(std::memory_order_relaxed) != record.missing_tag.load(std::memory_order_relaxed);
  }
  static bool peek(const Record& record);
  ShortLook look_shortly(Record& record);
  void prepare_short_way(Record& record, CeEdge& edge, VceState& vce, std::uint64_t control);
  static void publish(CeSlot& slot, std::uint16_t generation, std::uint64_t turn, const CeValue& value);
  bool follow(Record& record, bool service);
  static std::optional<CeStatus> trouble(const Record& record);
  Errc send(Peer& peer, const wire::PacketHeader& header);
  void finish(Record& record, bool service);
  static void write_result(const CeJoin& join, const CeValue& value) {
    const std::uint64_t none[2] = {};
    write_words(
        join.result, value.status == CeStatus::ok ? value.operand : none,
        ce_result::make(value.status, value.exceptions & join.exceptions_wanted, join.value.reduction));
  }
  static void write_words(std::uint64_t* result, const std::uint64_t (&operand)[2], std::uint64_t control) {
    std::atomic_ref<std::uint64_t>(result[1]).store(operand[0], std::memory_order_relaxed);
    std::atomic_ref<std::uint64_t>(result[2]).store(operand[1], std::memory_order_relaxed);
    // Release: a thread that sees the control word sees the result.
    std::atomic_ref<std::uint64_t>(result[0]).store(control, std::memory_order_release);
  }
  MemKey key_of(const Record& record) const;
  void know_self(const Port& port);
  bool is_mapped(const Peer& owner) const;
  bool find_owner(CeEdge& edge, Errc* error);
  template <typename Same>
  Errc take_record(Same same, std::uint64_t reduction, std::uint32_t* index);
  void note_used(std::uint32_t index);
  // The service thread takes the result in if the program does not poll. (heart_stopped has the barrier.)
  void beat_heart() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!heartbeat_on_.load(std::memory_order_relaxed)) [[unlikely]]
      start_heart();
  }
  void start_heart();
  void wake_owner(const CePath::Level& level);
  bool claim_for(VceState& vce, std::uint32_t child, ProcessName process);
  bool handle_packets(bool service);
  void handle_join(const wire::PacketHeader& header);
  void handle_release(wire::ProcessSlot source, const ce_packet::Release& release, bool service);
  void handle_failure(const wire::PacketHeader& header, Errc why, bool service);
  void add_waiter(const Waiter& waiter);
  void answer_waiters();
  bool release_to(const Waiter& waiter, const CeValue& value);
  void introduce(const Port& port, const CeEdge& edge, std::optional<std::uint32_t> instance = {});
  Errc join_by_packet(const Port& port, CeEdge& edge, const CeJoin& join);
  bool send_up(std::uint32_t index, Owned& owned, CeStatus broken);
  void send_up_all();
  void claim(const CePath::Level& level, std::uint32_t child);
  CePath* find_path(const CeEdge& edge, Errc* error);
  void extend(CePath& path);
  void observe(std::uint32_t vce, Owned& owned);
  bool attend();
  static void break_tree(const CePath::Level& level, CeStatus why);
  VceState& own(std::uint32_t vce) const;

  class TimedJoin;
  Errc post_timed(Request& request, const Port& port, CeEdge& edge, const CeJoin& join);

  HostServices& services_;
  Pending& pending_;
  const NicView view_;
  const wire::ProcessSlot self_;
  clock::Clock* const clock_;
  PeerTable& peers_;
  Ports& ports_;
  Transport& transport_;
  Regions& regions_;
  Mover& mover_;
  FaultUnit* const faults_;
  const bool by_packets_;
  // What active() looks at, in one line.
  alignas(kCacheLine) std::atomic<std::uint32_t> used_{0};  // records_[used_..] were never armed
  std::atomic<std::uint32_t> arrivals_count_{0};            // as of arrivals_
  std::atomic<std::uint32_t> waiter_count_{0};              // as of waiters_
  std::atomic<std::uint32_t> up_by_packet_{0};  // a bit for each VCE whose parent is reached by packets
  std::array<Record, kRecords> records_;
  std::atomic<std::uint32_t> reserved_{0};  // records that joins in flight will take
  std::atomic<bool> heartbeat_on_{false};
  std::uint32_t idle_beats_ = 0;      // service thread
  std::atomic<bool> in_beat_{false};  // the service thread polls because the heart beats
  std::atomic<std::uint32_t> owned_count_{0};
  std::atomic<std::uint64_t> me_{0};  // what we write into a claim; 0 until it was needed

  Lock<LockRank::arrivals> arrivals_mu_;  // held for a moment, with any other lock around it
  std::vector<Arrival> arrivals_;         // guarded by arrivals_mu_
  Lock<LockRank::collective_packets>
      packets_mu_;               // held while they are handled; before mu_ and the NIC's locks
  std::vector<Waiter> waiters_;  // guarded by packets_mu_

  Lock<LockRank::collective> mu_;
  std::array<Owned, kVces> owned_;              // guarded by mu_
  std::uint32_t last_vce_ = kVces - 1;          // guarded by mu_
  std::vector<std::unique_ptr<CePath>> paths_;  // guarded by mu_
};

// Finds a free record and returns it locked: threads of other ports may look for one too. In this order: the
// record that matches `same`, because at most one may exist (try_join); one that was never used; any free
// one. Errors: no_resource (all are in use, or the one that matches `same` is), invalid_state (and its
// reduction is this one).
template <typename Same>
Errc CollectiveEngine::take_record(Same same, std::uint64_t reduction, std::uint32_t* index) {
  Record* record = nullptr;
  bool is_new = false;
  const std::uint32_t used = used_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < kRecords && (i < used || !is_new); ++i) {
    Record& one = records_[i];
    one.lock.lock();
    const bool found = same(one);
    if (!one.armed.load(std::memory_order_relaxed)) {
      const bool nobodys = one.path == nullptr && one.owner == nullptr;
      if (found || record == nullptr || (nobodys && !is_new)) {
        if (record != nullptr) record->lock.unlock();
        record = &one;
        *index = i;
        is_new = nobodys;
        if (found) break;
        continue;  // and stays locked
      }
    } else if (found) {
      const bool again = one.join.value.reduction == reduction;
      one.lock.unlock();
      if (record != nullptr) record->lock.unlock();
      return again ? Errc::invalid_state : Errc::no_resource;
    }
    one.lock.unlock();
  }
  if (record == nullptr) return Errc::no_resource;
  if (record->lock.is_foreign()) record->lock.unbind();
  return Errc::ok;
}

}  // namespace orrery::nic
