// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/events/completion.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/target/datagram_state.hpp"
#include "emu/nic/transport/peer.hpp"

#include <array>
#include <bitset>
#include <compare>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace orrery::nic {

struct Endpoint;
struct Port;

// A post that is in flight by the wire: its place, and which of the posts that were there.
struct DatagramName {
  std::uint32_t index = 0;
  std::uint64_t serial = 0;
};

enum class DatagramStatus : std::uint8_t { pending, remote_data, completed, failed, terminated };

// What became of a post.
struct DatagramOutcome {
  DatagramStatus status = DatagramStatus::pending;
  std::uint32_t remote_address = 0;  // completed: the peer that it met
  std::uint32_t remote_instance = 0;
  std::uint32_t bytes = 0;  // completed: put into the post's buffer
};

// How often a post is looked at again while another process exchanges it. Each time that process gets the
// processor; an exchange takes less than a microsecond of it.
inline constexpr int kDatagramPatience = 64;

// The posts of one process. An endpoint has one at a time, from post() until test() or wait() take it or
// forget() drops it.
//
// Threads: post and forget of one endpoint one at a time; test, wait, cancel, probe and probe_wait beside all
// others. Of several that look at a post that has ended one takes it; the others find no_match.
// Invariants: (1) a record belongs to the post of the same index while the endpoint names it; (2) a post
// that could not be looked at for a moment (its peer has not attached, or an exchange was going on) is looked
// at again whenever its owner asks for anything; (3) no lock is held while a peer is mapped.
// Usage: unit.post(ep, bytes, {}, buffer);  DatagramOutcome o;  unit.test(ep, {}, &o);
class DatagramUnit final : public Listener {
 public:
  // What the unit needs of its NIC.
  struct Hooks {
    // Maps a process's NIC, or finds it mapped.
    std::function<Result<Peer*>(ProcessName)> connect;
    // Sends a post by the wire between hosts; its answer comes to exchanged(). Errors: no_resource.
    std::function<Errc(Peer&, const wire::PacketHeader&, std::span<const std::byte>, const Completion&)> send;
    // Whether nothing gets from one NIC address to another.
    std::function<bool(std::uint32_t from, std::uint32_t to)> is_cut;
    // Moves what is under way along. Cheap when there is nothing.
    std::function<void()> progress;
  };
  DatagramUnit(HostServices& services, NicView view, Hooks hooks);

  // Posts `data`; `buffer` is filled when the outcome is taken. Errors: size (over 128 bytes), no_resource
  // (the endpoint has one; another endpoint of the port has one towards the same peer; 4,096 are in use).
  Errc post(Endpoint& endpoint, std::span<const std::byte> data, std::optional<std::uint64_t> name,
            std::span<std::byte> buffer);
  // The state of the endpoint's post, and takes it when it has ended. With `name` only if it is called so.
  // Under a virtual clock this and the probes do not see yet what the clock holds back.
  // Errors: no_match (there is none), size (the buffer is too small for what came; the post is gone).
  Errc test(Endpoint& endpoint, std::optional<std::uint64_t> name, DatagramOutcome* outcome);
  // The same, but waits for the end until `deadline_ns` of Waits::now_ns() (none: for ever). Errors also
  // timeout.
  Errc wait(Endpoint& endpoint, std::optional<std::uint64_t> name, std::optional<std::int64_t> deadline_ns,
            DatagramOutcome* outcome);
  // The oldest of the port's unnamed posts that ended. Takes nothing. Errors: no_match.
  Errc probe(const Port& port, DatagramOutcome* outcome);
  // The name of the oldest of the port's named posts that ended. Errors: no_match.
  Errc probe_named(const Port& port, std::uint64_t* name);
  // The same, but waits. Errors: timeout.
  Errc probe_wait_named(const Port& port, std::optional<std::int64_t> deadline_ns, std::uint64_t* name);
  // Ends the post; test() then says terminated. Errors: no_match (none, or it has ended, or is being
  // exchanged by a process that does not go on).
  Errc cancel(Endpoint& endpoint, std::optional<std::uint64_t> name);
  // Whether the endpoint's post, if any, still waits for its partner.
  bool is_open(const Endpoint& endpoint) const;
  // Whether it is being exchanged.
  bool is_busy(const Endpoint& endpoint) const;
  // Drops the endpoint's post, whatever its state.
  void forget(Endpoint& endpoint);
  // The endpoint goes: a named post of it that was not taken ends, and probe_named() tells its name once.
  void leave_behind(Endpoint& endpoint);
  // The port goes, and what its endpoints left behind.
  void forget_left_behind(const Port& port);

  // Which post the packet was that hooks.send sent.
  static DatagramName post_of(const Completion& completion) {
    return {completion.value, reinterpret_cast<std::uintptr_t>(completion.context)};
  }
  // The answer to it has come: exchanged().
  void ended(const Completion& completion, const Ending& ending) override;
  // What it says: ok with the partner's bytes, or why the post met no partner. Any thread; sends nothing, and
  // takes no lock but the innermost one.
  void exchanged(const DatagramName& name, Errc status, const DatagramReply& reply);
  // A datagram packet has come by the wire and is to be applied next: if it describes a bound post, wildcards
  // of the port that it is bound to must ask its process from now on. Any thread.
  void note_source(const wire::PacketHeader& header);
  // How many processes are remembered, each for one port.
  std::size_t sources_for_test() const;

 private:
  struct Record {
    const Port* port = nullptr;  // null: not in use
    std::span<std::byte> buffer;
    std::uint64_t name = 0;
    bool named = false;
    std::atomic<bool> look_again{false};
    bool left_behind = false;          // its endpoint is gone. Guarded by mu_
    bool told = false;                 // probe_named() gave its name. Guarded by mu_
    std::atomic<Peer*> peer{nullptr};  // of a bound post
    std::uint32_t nic_address = 0;     // of the peer
    std::uint32_t instance = 0;
    bool was_looked_at = false;  // of a post to its own port. Belongs to the thread that took look_again away
    // By the wire one process is asked at a time. What follows belongs to the thread that took look_again
    // away, and to exchanged() while the post is asking.
    std::vector<ProcessName> to_ask;  // the one that is asked now is the last
    bool in_round = false;            // to_ask was filled
    // How many threads look for the partner of the post of this serial, which is the record's. Guarded by
    // mu_.
    struct {
      std::uint64_t serial = 0;
      std::uint32_t threads = 0;
    } in_hand;
    std::atomic<std::int64_t> not_before_ns{0};  // monotonic_ns(): when it is worth looking again
  };

  DatagramPost& post_at(std::uint32_t index) const { return state_.posts[index]; }
  // Which post, for a thread that looks at it while others may take it and its place is used again.
  struct Named {
    std::uint32_t index = 0;
    std::uint64_t serial = 0;
  };
  std::optional<Named> post_of(const Endpoint& endpoint, std::optional<std::uint64_t> name) const;
  std::optional<std::uint32_t> allocate();
  void release(std::uint32_t index);
  std::optional<std::uint64_t> take_in_hand(std::uint32_t index);
  void match_in_hand(std::uint32_t index, std::uint64_t serial);
  void match(std::uint32_t index);
  bool match_at(std::uint32_t index, Peer& peer);
  std::vector<wire::ProcessSlot> sources_here() const;
  void meet_itself(std::uint32_t index);
  bool tell(std::uint32_t index, std::uint64_t serial);
  bool bury(std::uint32_t index);
  std::optional<std::uint32_t> take_oldest_left_behind();
  bool meet(std::uint32_t index, wire::ProcessSlot slot, std::vector<ProcessName>* by_wire);
  std::optional<std::uint32_t> oldest_that_asks(std::uint32_t index) const;
  void ask_next(std::uint32_t index);
  std::vector<wire::ProcessSlot> sources_by_wire(std::uint32_t index) const;
  bool any_source() const;
  bool may_have_one_for(std::uint32_t index, wire::ProcessSlot slot) const;
  void has_none_for(std::uint32_t index, wire::ProcessSlot slot);
  void wake();
  bool take_back_from_the_dead(DatagramPost& post, std::uint64_t word);
  PostState settle(std::uint32_t index);
  bool claim_ended(Endpoint& endpoint, const Named& which, PostState* end);
  Errc take(Endpoint& endpoint, const Named& which, DatagramOutcome* outcome);
  struct Ended {
    std::uint32_t index = 0;
    std::uint64_t name = 0;
    std::uint64_t serial = 0;
    std::uint64_t order = 0;
  };
  std::optional<Ended> first_ended(const Port& port, bool named);
  bool is_held_back(std::uint32_t index) const;
  Errc find_named(const Port& port, std::uint64_t* name, bool waits);
  template <typename Done>
  bool wait_until(std::optional<std::int64_t> deadline_ns, Done done);
  wire::PacketHeader header_of(const DatagramPost& post) const;

  HostServices& services_;
  const NicView view_;
  DatagramState& state_;
  const Hooks hooks_;
  const ProcessName self_;

  std::atomic<bool> some_look_again_{false};  // a post of ours is to be looked at soon
  mutable Lock<LockRank::datagrams> mu_;      // records in use, and the free ones
  std::vector<Record> records_;               // by index of the post
  std::vector<std::uint32_t> free_;           // guarded by mu_
  std::vector<std::uint32_t> stuck_;          // dropped while an exchange was going on, guarded by mu_
  std::uint64_t next_order_ = 0;              // guarded by mu_

  // A process of another host that has, or had, posts bound to a port of ours that met no partner here.
  struct WireSource {
    std::uint64_t port = 0;  // port_word
    std::uint16_t domain = 0;
    wire::ProcessSlot slot = 0;
    friend auto operator<=>(const WireSource&, const WireSource&) = default;
  };
  WireSource source_of(std::uint32_t index, wire::ProcessSlot slot) const;
  void note_port(std::uint32_t index);
  mutable Lock<LockRank::datagram_sources> sources_mu_;  // innermost: nothing else is taken under it
  // Guarded by sources_mu_. A peer may post to ports that no process has: of those it is remembered only that
  // there were any, so that sources_ has no more than our own ports times the processes of the job.
  std::set<WireSource> sources_;
  std::set<WireSource> ports_;         // for which wildcards were posted here, slot 0
  std::bitset<kMaxProcesses> others_;  // slots with posts to other ports
};

}  // namespace orrery::nic
