// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/event_loop.hpp"
#include "emu/base/status.hpp"
#include "emu/base/wait.hpp"
#include "emu/job/descriptors.hpp"
#include "emu/job/host_directory.hpp"
#include "emu/job/launch.hpp"
#include "emu/job/peer_watch.hpp"
#include "emu/job/placement.hpp"
#include "emu/job/user_directory.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::job {

// This process's end of the PMI-1 wire that `launch` (pmi1) names; where its descriptor was closed on the way
// to this process, a new one from `orrery run`. Blocks for 10 s at most. Errors: invalid_state (a process of
// that rank speaks to the launcher already), unreachable, timeout; the log says why.
Result<UniqueFd> pmi_of_launch(const Launch& launch);

// This process's membership in a job: its service thread, the host directory, its slot there, its descriptor
// server and the watch over its peers. It never speaks on PMI_FD: that is libpmi's (or another library's).
//   1. A program has one, of_process(), made by the first PMI_Init or CdmAttach; tests make as many as they
//      like over one directory and one loop.
//   2. Members are safe from any thread.
//   3. A fork()ed child is not a member: of_process() joins anew there.
// Usage: auto job = Job::of_process(); job.value()->publish(domain, instance, nic_index);
class Job {
 public:
  // The process's job; joins on the first call. Under `orrery run` the directory is the one that it made
  // (ORRERY_JOB_FD); else all processes of this user on this host that have the same ORRERY_JOB share one, or
  // those among them whose launcher calls their job by the same `launch_name`, when the first call gives one.
  // May block for some milliseconds, at most 10 s. Errors: those of the parts; the log says why.
  // `launch_size`: PEs of that job, when the environment does not say.
  static Result<Job*> of_process(std::string_view launch_name = {}, int launch_size = -1);
  // The process's job if of_process() has succeeded in this very process, else nullptr.
  static Job* if_joined();

  struct Options {
    EventLoop* loop = nullptr;           // not owned; none: the job starts its own
    HostDirectory* directory = nullptr;  // not owned; none: a new one of its own
    Launch launch;
  };
  static Result<std::unique_ptr<Job>> join(const Options& options);
  ~Job();  // leaves
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  EventLoop& loop() { return *loop_; }
  HostDirectory& directory() { return *directory_; }
  const HostDirectory& directory() const { return *directory_; }
  PeerWatch& peers() { return *peers_; }
  ProcessRef self() const { return self_; }
  const Launch& launch() const { return launch_; }
  int rank() const { return launch_.rank; }  // -1: unknown
  int size() const { return launch_.size; }  // -1: unknown
  // Where the PEs live; empty while it is not known.
  const Placement& placement() const { return *placement_.load(std::memory_order_acquire); }
  // Says so, when the launcher did not. REQUIRES: as many PEs as the job has; this process has a rank; no
  // endpoint was published yet. One thread.
  void place(Placement placement);
  // Whether slots below pes() name the PEs of the whole job, on whichever host; else 0.
  std::uint32_t pes_with_slots() const { return pes_with_slots_; }
  // The address that nic_address() gives without a placement. Needs no job.
  static std::uint32_t nic_address_of_this_host();
  // 18-bit address of this process's NIC and the number of its node. Without a placement all processes on
  // this host are on one node, whose number follows from the boot id.
  std::uint32_t nic_address() const { return own_place().nic_address; }
  // The same of another process of the directory. Errors: unreachable (it is gone).
  Result<std::uint32_t> nic_address_of(ProcessRef process) const;
  std::uint32_t nid() const { return own_place().nid; }

  // ---- domains ----
  // Signs on to a domain. Errors: permission (no launcher, PMI_GNI_* variable or declare made it).
  Result<DomainId> find_domain(std::uint8_t ptag, std::uint32_t cookie) const;
  // The privileged act (ConfigureJob of uGNI, PMI_Init). Errors: no_resource.
  Result<DomainId> declare_domain(std::uint8_t ptag, std::uint32_t cookie);
  // Errors: no_match.
  Result<std::uint8_t> find_ptag(std::uint32_t cookie) const;

  // ---- endpoints (HostDirectory has the details) ----
  Result<EndpointRef> publish(DomainId domain, std::uint32_t instance, std::uint32_t nic_index);
  void withdraw(EndpointRef endpoint) { directory_->withdraw_endpoint(endpoint); }
  Result<Endpoint> find(const EndpointKey& key) const { return directory_->find_endpoint(key); }
  Result<Endpoint> wait_for(const EndpointKey& key, std::int64_t deadline_ns) {
    return directory_->wait_endpoint(self_, key, deadline_ns);
  }

  // ---- descriptors ----
  void offer(DescriptorKind kind, int fd) { server_->offer(kind, fd); }
  Result<Descriptors> fetch(ProcessRef process, std::int64_t deadline_ns) const {
    return fetch_descriptors(*directory_, process, deadline_ns);
  }

  // How long this process should spin and yield before it sleeps, from PEs on this host per allowed core.
  WaitBudget wait_budget() const { return wait_budget_; }

 private:
  Job() = default;
  static Result<std::unique_ptr<Job>> join_as(const Launch& launch, std::string_view launch_name);
  Status enter(const std::string& prefix, bool share, std::uint32_t pes_with_slots);
  PePlace own_place() const;
  WaitBudget budget() const;

  std::unique_ptr<EventLoop> own_loop_;
  std::unique_ptr<HostDirectory> own_directory_;
  EventLoop* loop_ = nullptr;
  HostDirectory* directory_ = nullptr;
  Launch launch_;
  std::uint32_t pes_with_slots_ = 0;
  std::vector<std::unique_ptr<const Placement>> placements_;  // the last one counts
  std::atomic<const Placement*> placement_{nullptr};
  WaitBudget wait_budget_;
  ProcessRef self_;
  std::unique_ptr<PeerWatch> peers_;
  std::unique_ptr<DescriptorServer> server_;
  std::unique_ptr<DescriptorServer> leader_;  // when this process hands out the user's directory
};

}  // namespace orrery::job
