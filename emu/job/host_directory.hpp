// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/unique_fd.hpp"
#include "emu/job/host_directory_layout.hpp"
#include "emu/job/resource_limits.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace orrery::job {

// Names one process that joined, for ever: a later process in the same slot has another generation.
struct ProcessRef {
  std::uint32_t index = UINT32_MAX;
  std::uint32_t generation = 0;
  bool valid() const { return index != UINT32_MAX; }
  friend bool operator==(const ProcessRef&, const ProcessRef&) = default;
};

// A communication domain's place in the directory; the same in every process of the job on this host.
using DomainId = std::uint32_t;

struct EndpointKey {
  DomainId domain = 0;
  std::uint32_t nic_address = 0;
  std::uint32_t instance = 0;
  friend bool operator==(const EndpointKey&, const EndpointKey&) = default;
};

// Where an attached CDM is to be found: a NIC (by its index) in a process's NIC segment.
struct Endpoint {
  EndpointKey key;
  ProcessRef process;
  std::uint32_t nic_index = 0;
};

// Names one publication, to withdraw it.
struct EndpointRef {
  std::uint32_t index = UINT32_MAX;
  std::uint64_t state = 0;
};

// Where one PE lives on the pretended machine.
struct PePlace {
  std::uint32_t nid = 0;
  std::uint32_t nic_address = 0;  // 18 bits
  std::uint32_t node_index = 0;   // 0 .. node_count - 1
};

// What a process is blocked in, for the report of a hang. Stored with one plain write before sleeping.
enum class WaitPlace : std::uint32_t { nowhere = 0, pmi_barrier, pmi_get, attach, cq_wait, bte, smsg, other };
std::string_view wait_place_name(WaitPlace place);

// Identity of a process that joined, for messages and for watching it.
struct ProcessInfo {
  pid_t pid = 0;
  std::uint64_t start_time = 0;
  std::uint64_t pid_namespace = 0;  // 0: unknown
  std::int32_t rank = -1;
  WaitPlace waiting_in = WaitPlace::nowhere;
  std::uint64_t request_nonce = 0;
  std::uint64_t reply_nonce = 0;
  std::string socket_name;
};

// A job as its hosts agreed on it.
struct WireJob {
  std::uint64_t job = 0;
  std::uint64_t secret[2] = {};  // both 0 in set_wire_job(): the one that the directory drew when it was made
  std::uint32_t hosts = 1;       // 1: this is the only one
};

// Where a process is reached by the wire between hosts.
struct WireAddress {
  std::uint32_t generation = 0;
  std::uint32_t host = 0;  // 0: this one
  std::vector<std::byte> bytes;
};

// What the creator of a directory knows about the job. All of it is optional.
struct DirectorySpec {
  std::vector<PePlace> pes;         // empty: number and places of the PEs are unknown
  std::uint32_t allowed_cores = 0;  // 0: not counted
};

// The shared memory through which the processes of a job on one host find each other: which processes live,
// which endpoint is whose, which domains exist. Owns a mapping and the descriptor of it.
//   1. Same host means: this very memory. Names of hosts are never compared.
//   2. Every change is one compare-and-swap away from the state before; a process killed at any instruction
//      leaves either state, and a claim that names it (host_directory_layout.hpp).
//   3. Bytes of the directory were written by processes of the same user and are range-checked, not trusted.
//   4. All members are safe from any thread; none waits but wait_endpoint().
// Usage: auto d = HostDirectory::create({}); d.value()->join({.rank = 0}); d.value()->find_endpoint(key);
class HostDirectory {
 public:
  static constexpr std::uint32_t kMaxPes = layout::kMaxPes;
  static constexpr std::uint32_t kMaxProcesses = layout::kMaxProcesses;

  // Makes a new directory in a memfd that lives as long as a process holds or maps it.
  // Errors: size (more than kMaxPes PEs), no_memory, system.
  static Result<std::unique_ptr<HostDirectory>> create(const DirectorySpec& spec);

  // Maps a directory that another process made; takes the descriptor.
  // Errors: corrupt (not a complete directory of this version), no_match (made under another boot), system.
  static Result<std::unique_ptr<HostDirectory>> open(UniqueFd fd);

  // The job of a directory's file; 0: it is none. For telling whether a descriptor is what it was.
  static std::uint64_t job_id_of(int fd);

  ~HostDirectory();
  HostDirectory(const HostDirectory&) = delete;
  HostDirectory& operator=(const HostDirectory&) = delete;

  int fd() const { return fd_.get(); }
  std::uint64_t job_id() const { return header().job_id; }
  std::uint64_t secret() const { return header().secret; }
  std::uint32_t pe_count() const;       // 0: unknown
  std::uint32_t node_count() const;     // 0: unknown
  std::uint32_t allowed_cores() const;  // 0: unknown
  // Errors: no_match (`pe` is not below pe_count()).
  Result<PePlace> place_of(std::uint32_t pe) const;

  // ---- processes ----
  struct Joining {
    std::int32_t rank = -1;
    std::string socket_name;  // of its descriptor server; at most kSocketNameBytes; may be empty
    // PEs of the job, when each has the slot of its own rank: then slots name processes on all of its hosts
    // alike. This process gets the one of its rank unless another lives there, else one behind all of them.
    std::uint32_t pes = 0;
  };
  // Enters this process. One process may join several times: each is a participant of its own.
  // Errors: no_resource (all slots are live), size (socket name too long).
  Result<ProcessRef> join(const Joining& who);
  // Leaves: the slot is dead to the others, its endpoints are gone.
  void leave(ProcessRef self);
  // Marks `process` dead. True for the one call that changed it.
  bool mark_dead(ProcessRef process);
  // Whether it joined and neither left nor was marked dead. One load; for hot paths.
  bool is_live(ProcessRef process) const {
    if (process.index >= kMaxProcesses) return false;
    const std::uint64_t state = processes()[process.index].state.load(std::memory_order_acquire);
    return (state & 0xf) == static_cast<std::uint64_t>(layout::ProcessPhase::live) &&
           state >> 32 == process.generation;
  }
  // Errors: unreachable (not live).
  Result<ProcessInfo> info_of(ProcessRef process) const;
  // All live processes, in slot order.
  std::vector<ProcessRef> live_processes() const;
  // The live process that joined as `rank`. Errors: no_match.
  Result<ProcessRef> process_of_rank(std::int32_t rank) const;
  // ---- the wire between hosts (host_directory_wire.cpp) ----
  // Says that this job's processes reach others by the wire, and as which job. The first call decides.
  void set_wire_job(const WireJob& job);
  // Nothing: set_wire_job() was not called.
  std::optional<WireJob> wire_job() const;
  // Publishes where this process is reached. Errors: size (too long).
  Status publish_wire_address(ProcessRef self, std::span<const std::byte> address);
  // Enters a process of another host, `host` from 1. Errors: size, invalid_param (a live process of this host
  // has the slot).
  Status add_remote(ProcessRef process, std::uint32_t host, std::span<const std::byte> address);
  // The address that reaches the process at a slot. Errors: no_match (none is published, or it is changing).
  Result<WireAddress> wire_address(std::uint32_t slot) const;
  // Host number of the process in a slot, 0 for this host or an empty slot; and its generation. Cheap.
  std::uint32_t remote_host_of(std::uint32_t slot, std::uint32_t* generation) const;

  // What the processes' NICs share, layout::kBoardBytes of it, all zero at first.
  layout::BoardLine* board() const { return table<layout::BoardLine>(layout::kBoardAt); }

  // The lines of the process in a slot (waiting_call.hpp). REQUIRES: slot < kMaxProcesses.
  std::span<layout::CallLine> calls_of(std::uint32_t slot) const {
    return {table<layout::CallLine>(layout::kCallsAt) + std::size_t{slot} * layout::kCallLines,
            layout::kCallLines};
  }

  // Says what this process is about to sleep in; nowhere when it goes on. One relaxed store.
  void note_wait(ProcessRef self, WaitPlace place);

  // ---- domains ----
  // Creates the domain (the launcher's act), or finds it. Errors: no_resource.
  Result<DomainId> declare_domain(std::uint8_t ptag, std::uint32_t cookie);
  // Errors: permission (it is not declared).
  Result<DomainId> find_domain(std::uint8_t ptag, std::uint32_t cookie) const;
  // The protection tag of the first domain with that cookie. Errors: no_match.
  Result<std::uint8_t> find_ptag(std::uint32_t cookie) const;
  struct Domain {
    std::uint8_t ptag = 0;
    std::uint32_t cookie = 0;
  };
  // In the order of their declaration; index = DomainId.
  std::vector<Domain> domains() const;
  // Says whose job a declared domain is, the launcher's number for it. Errors: no_match (no such domain),
  // invalid_state (it is another job's already).
  Errc claim_domain(DomainId domain, std::uint64_t job_id);
  // The job that owns it by now; nothing while it was not given to one.
  std::optional<std::uint64_t> claimed_by(DomainId domain) const;
  // How many of a resource of each process's NIC the domain may use; nothing: as many as there are. Of an
  // unknown domain there is no limit, and setting one does nothing.
  std::optional<std::uint32_t> limit_of(DomainId domain, Resource resource) const;
  void set_limit(DomainId domain, Resource resource, std::optional<std::uint32_t> most);
  // Gives the domain a range of translation table of that size, once. Errors: illegal_op (it has one of
  // another size), no_match.
  Errc set_translation_size(DomainId domain, std::uint32_t size);

  // ---- endpoints ----
  // Makes (domain, NIC address, instance) findable. REQUIRES: `self` is live.
  // Errors: invalid_state (a live process holds the key), no_resource (table full), timeout (a process
  // stopped in the middle of publishing the same key; tried for 2 s).
  Result<EndpointRef> publish_endpoint(ProcessRef self, const EndpointKey& key, std::uint32_t nic_index);
  void withdraw_endpoint(EndpointRef endpoint);
  // Errors: no_match (never published or withdrawn), unreachable (its process died or left).
  Result<Endpoint> find_endpoint(const EndpointKey& key) const;
  // All of a domain behind one NIC address whose processes live, in no order.
  std::vector<Endpoint> endpoints_at(DomainId domain, std::uint32_t nic_address) const;
  // As find_endpoint(), but waits until it is published or until `deadline_ns` of monotonic_ns(). Logs what
  // is missing before it returns timeout.
  Result<Endpoint> wait_endpoint(ProcessRef self, const EndpointKey& key, std::int64_t deadline_ns);
  // The live processes with an endpoint in the domain, in slot order.
  std::vector<ProcessRef> processes_in(DomainId domain) const;
  // "3 of 4 PEs have attached to domain 0; missing: PE 2 (pid 71, stopped)". For messages.
  std::string who_is_missing(DomainId domain) const;

 private:
  HostDirectory(UniqueFd fd, void* base) : fd_(std::move(fd)), base_(base) {}
  layout::Header& header() const { return *static_cast<layout::Header*>(base_); }
  template <typename Slot>
  Slot* table(std::size_t at) const {
    return reinterpret_cast<Slot*>(static_cast<std::byte*>(base_) + at);
  }
  layout::DomainSlot* domain_slots() const { return table<layout::DomainSlot>(layout::kDomainsAt); }
  layout::PeSlot* pes() const { return table<layout::PeSlot>(layout::kPesAt); }
  layout::ProcessSlot* processes() const { return table<layout::ProcessSlot>(layout::kProcessesAt); }
  layout::WireHeader& wire_header() const { return *table<layout::WireHeader>(layout::kWireHeaderAt); }
  layout::WireSlot* wire_slots() const { return table<layout::WireSlot>(layout::kWireSlotsAt); }
  Status write_wire_slot(ProcessRef process, std::uint32_t host, std::span<const std::byte> address);
  layout::EndpointSlot* endpoints() const { return table<layout::EndpointSlot>(layout::kEndpointsAt); }
  bool owner_is_live(std::uint64_t endpoint_state) const;
  void bury_if_gone(std::uint64_t endpoint_state);
  Result<ProcessRef> join_range(const Joining& who, std::uint32_t first, std::uint32_t end);
  bool is_gone(std::uint64_t process_state, std::uint32_t index) const;
  bool holds_key(const layout::EndpointSlot& slot, const EndpointKey& key) const;
  Errc settle_duplicates(std::uint32_t mine, std::uint64_t mine_state, const EndpointKey& key);
  void announce_change();

  UniqueFd fd_;
  void* base_;
};

}  // namespace orrery::job
