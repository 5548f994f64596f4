// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/memory/symmetric_heap.hpp"
#include "emu/nic/host/runtime.hpp"
#include "emu/nic/target/match_unit.hpp"
#include "lib/common/match_memory.hpp"
#include "lib/common/sign_on.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace orrery::common {

// A stretch of some process's memory.
struct MatchRange {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

// A process whose match unit is mapped here, this one included; or one that is reached by frames alone.
struct MatchPeer {
  nic::Runtime* runtime = nullptr;  // this process's
  nic::ProcessName name;
  nic::match::View match;
  std::unique_ptr<MatchMemory> memory;  // null: this process's own, or reached by frames alone
  bool self = false;
  bool by_frame = false;  // `match` is not mapped: messages travel as frames
  bool by_wire = false;   // and by the wire between hosts
};

// This process as one of those that match messages: its match unit in the NIC's segment, the pid under which
// others find it, and the processes that it exchanges messages with.
// Threads: find() any; start(), sign_on() and sign_off() one at a time.
// Usage: MatchNode node;  node.start(api);  node.sign_on(MatchNode::kAnyPid, 0);  node.find({nid, pid});
class MatchNode {
 public:
  static constexpr std::uint32_t kAnyPid = UINT32_MAX;
  // What tells the processes of one API from those of another.
  struct Api {
    std::uint8_t protection_tag = 0;
    std::uint32_t cookie = 0;
    std::uint32_t place = 0;  // of its unit in the segment's directory: 0 or 1
    nic::match::Shape shape;
    std::uint32_t pids = 0;  // pids are below
    // Whether a process that is reached by frames has that pid; none: those are not looked for.
    std::function<bool(nic::ProcessName, std::uint32_t)> has_pid;
  };

  // Joins the job and lays out the match unit, the first time. Errors: no_memory (the NIC's arena is full),
  // and those of joining; the log says why.
  Status start(const Api& api);
  // Others find this process under `pid`, or kAnyPid: `preferred` or the next that is free. Errors:
  // invalid_state (another has it), no_resource.
  Status sign_on(std::uint32_t pid, std::uint32_t preferred);
  void sign_off();
  bool is_signed_on() const { return signed_on_; }

  bool is_started() const { return runtime_ != nullptr; }
  nic::Runtime& runtime() { return *runtime_; }
  clock::Clock* clock() { return runtime_->clock(); }  // null: raw time
  std::uint32_t domain() const { return domain_; }
  std::uint32_t nid() const { return nid_; }
  std::uint32_t pid() const { return pid_; }
  nic::match::View own() const { return self_.match; }
  MatchPeer& self() { return self_; }

  // Makes an event queue of an interface with room for `capacity` records: its index, or 0 where no ring or
  // no queue is left. The caller's session on own() also covers what it checks before.
  std::uint32_t open_queue(nic::match::Session& session, std::uint64_t capacity, std::uint32_t interface);
  // Ends one that exists; its handles are void.
  void close_queue(std::uint32_t index);
  // Gives back the rings of all queues that an interface still has: it is about to be forgotten
  // (match::forget_interface).
  void give_rings_of(const nic::match::Session& session, std::uint32_t interface);

  // The process behind (nid, pid); null: none that is alive. May ask processes of other hosts the first time.
  // Each thread keeps the last that it was given.
  MatchPeer* find(nic::match::ProcessId id) {
    const Kept& kept = t_kept;
    if (kept.node == this && kept.id == id && kept.change == peers_change_.load(std::memory_order_acquire) &&
        is_alive(*kept.peer))
      return kept.peer;
    return find_and_keep(id);
  }
  // Whether find() has ever found one there.
  bool has_met(nic::match::ProcessId id);
  // Whether that process has not ended.
  bool is_alive(const MatchPeer& peer) const {
    if (peer.self) return true;
    if (peer.by_wire) return runtime_->alive(peer.name);
    return directory_->is_live({.index = peer.name.slot, .generation = peer.name.generation});
  }

 private:
  // The last that find() gave this thread.
  struct Kept {
    const MatchNode* node = nullptr;
    MatchPeer* peer = nullptr;
    std::uint32_t change = 0;
    nic::match::ProcessId id;
  };
  // initial-exec: no call to reach it.
  static __attribute__((tls_model("initial-exec"))) thread_local constinit Kept t_kept;

  MatchPeer* find_and_keep(nic::match::ProcessId id);
  MatchPeer* find_slowly(nic::match::ProcessId id);
  MatchPeer* connect(nic::ProcessName name);
  MatchPeer* find_elsewhere(nic::match::ProcessId id);

  nic::Runtime* runtime_ = nullptr;
  const job::HostDirectory* directory_ = nullptr;  // of the runtime's job
  Api api_;
  SignOn port_;
  std::uint32_t domain_ = 0;
  std::uint32_t nid_ = 0;
  std::uint32_t pid_ = 0;
  bool signed_on_ = false;
  MatchPeer self_;
  std::atomic<std::uint32_t> peers_change_{1};  // what threads kept before it changed does not count
  std::mutex peers_mu_;
  std::map<std::uint64_t, MatchPeer*> by_id_;        // nid << 32 | pid; guarded by peers_mu_
  std::vector<std::unique_ptr<MatchPeer>> storage_;  // guarded by peers_mu_
  std::uint64_t queues_opened_ = 0;                  // changes under the match unit's lock
  std::optional<memory::SymmetricHeap> rings_;       // offsets in the match unit of event queues' rings
};

// The stretches of [offset, offset + length) in memory that was bound in `pieces` parts (0: one), a list of
// {address, bytes} at `start`. False: the list cannot be read, or is shorter.
bool ranges_of(MatchPeer& owner, std::uint64_t start, std::uint32_t pieces, std::uint64_t offset,
               std::uint64_t length, std::vector<MatchRange>* ranges);
// Reads from or writes to a process's memory. Errors: bounds (not all of it is there), unreachable.
Errc read(MatchPeer& owner, const std::vector<MatchRange>& from, std::byte* to);
Errc write(MatchPeer& owner, const std::vector<MatchRange>& to, const std::byte* from);
Errc copy(MatchPeer& from_owner, const std::vector<MatchRange>& from, MatchPeer& to_owner,
          const std::vector<MatchRange>& to);

}  // namespace orrery::common
