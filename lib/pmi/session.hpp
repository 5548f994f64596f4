// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/clock/clock.hpp"
#include "emu/job/job.hpp"
#include "emu/job/placement.hpp"
#include "emu/job/pmi_client.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace orrery::pmi {

// What PMI_Init sets up: the wire to the launcher (none for a singleton), where the PEs live, the domains.
// Owns the wire; the job is the process's.
//   1. There is at most one per process, current(); a forked child does not have its parent's.
//   2. One thread at a time, as PMI has it.
class Session {
 public:
  // Opens the process's session, or finds it. Errors: unsupported (a launcher without a protocol here),
  // invalid_state (finalised before, or the parent's), and those of the wire and the job. The log says why.
  static Result<Session*> open();
  // The session of this process, or nullptr.
  static Session* current();
  // Says goodbye to the launcher and ends the session.
  static Status close();

  int rank() const { return rank_; }
  int size() const { return size_; }
  const job::Placement& placement() const { return placement_; }
  std::vector<int>& nids() { return nids_; }
  const std::string& kvs_name() const { return kvs_name_; }
  job::PmiClient::Limits limits() const;
  Result<int> appnum();
  Result<int> universe_size();
  // Order in which gathers return their pieces: never that of the ranks when there are two or more.
  const std::vector<int>& gather_order() const { return gather_order_; }

  // Any value without a zero byte; unprintable ones go encoded. Errors: as PmiClient::put.
  Status put(std::string_view key, std::string_view value);
  Result<std::string> get(std::string_view key);
  // `takes`: what it takes under a clock from the last arrival on, as machine_time() says; those of wire-up
  // take nothing.
  Status barrier(Picos takes = {});
  Status barrier_enter();
  Status barrier_leave(Picos takes = {});
  // What the machine takes for that collective of all PEs; nothing without a clock.
  Picos machine_time(model::Collective collective, std::uint64_t bytes) const;
  bool in_barrier() const { return in_barrier_; }
  // Every rank of `members` (ascending; all when empty) gives bytes, and gets those of every member, in
  // members' order. Collective over the members.
  Result<std::vector<std::string>> gather(std::string_view bytes, const std::vector<int>& members);
  // What rank 0 gave. Collective.
  Result<std::string> broadcast(std::string_view bytes, Picos takes = {});
  // As PMI_Abort().
  [[noreturn]] void abort(int code, const char* message);

 private:
  Session() = default;
  Status set_up();
  Status open_client(const job::Launch& launch);
  Status agree(std::vector<job::HostDirectory::Domain>* domains, job::WireJob* job);
  // hosts.cpp
  std::vector<int> ranks_here() const;
  Status join_hosts(const job::WireJob& job, bool placed);
  Status put_host(const std::vector<int>& here);
  Status get_hosts(const std::vector<int>& here);
  Result<job::ProcessRef> find_first();
  // A question to the launcher needs no PE's turn under a clock: the launcher answers by itself.
  template <typename Question>
  auto asked(Question question) {
    const clock::RealWait wait(clock_);
    return question();
  }
  Status put_bytes(const std::string& key, std::string_view bytes);
  Status give(const std::string& key, std::string_view bytes);
  Status check_alone_as_rank() const;
  Result<std::string> get_bytes(const std::string& key, int from);
  Result<std::string> poll_bytes(const std::string& key, int from);
  bool visible_at_once() const;

  int rank_ = 0;
  int size_ = 1;
  job::Job* job_ = nullptr;
  std::unique_ptr<job::PmiClient> wire_;                       // none: a singleton
  clock::Clock* clock_ = nullptr;                              // none: raw time
  std::map<std::string, std::string, std::less<>> own_space_;  // of a singleton
  std::set<std::string, std::less<>> own_keys_;                // that the client has put
  std::string kvs_name_;
  job::Placement placement_;
  std::vector<int> nids_;
  std::vector<int> gather_order_;
  std::uint64_t gathers_ = 0;       // number of the next collective: part of its keys
  std::uint64_t node_gathers_ = 0;  // as above, among the processes of a node
  bool in_barrier_ = false;
};

}  // namespace orrery::pmi
