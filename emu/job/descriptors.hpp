// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/event_loop.hpp"
#include "emu/base/status.hpp"
#include "emu/base/unique_fd.hpp"
#include "emu/job/host_directory.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace orrery::job {

// What a process hands to its peers. The order is the wire's. Append only.
enum class DescriptorKind : std::uint8_t { nic_segment = 0, memory_file = 1, doorbell = 2 };
inline constexpr int kDescriptorKinds = 3;

// Descriptors of a peer; those that it does not offer are empty.
struct Descriptors {
  UniqueFd nic_segment;
  UniqueFd memory_file;
  UniqueFd doorbell;
};

// Hands this process's descriptors to processes of the same user that can read the same directory, over an
// abstract Unix socket. Owns the socket; the offered descriptors stay the caller's, and must stay open.
//   1. Runs on the loop thread; a client that says nothing costs one of 64 pending places, oldest out first.
//   2. A peer gets something only after its uid (SO_PEERCRED) and the slot's request nonce were checked;
//      everybody else is disconnected without an answer.
//   3. Nothing is left behind by a kill: the name is abstract.
// Usage: DescriptorServer::listen(loop, name); directory.join({.socket_name = name}); server->serve(...);
class DescriptorServer {
 public:
  // Binds and listens at a fresh random name; answers nobody yet. Errors: system.
  static Result<std::unique_ptr<DescriptorServer>> listen(EventLoop& loop);
  ~DescriptorServer();
  DescriptorServer(const DescriptorServer&) = delete;
  DescriptorServer& operator=(const DescriptorServer&) = delete;

  const std::string& socket_name() const { return name_; }
  // Answers from now on as `self` of `directory`, which must outlive this.
  void serve(const HostDirectory& directory, ProcessRef self);
  // Offers `fd` (not owned) as `kind`; -1 takes the offer back. Any thread.
  void offer(DescriptorKind kind, int fd);

 private:
  struct Pending;
  explicit DescriptorServer(EventLoop& loop) : loop_(loop) {}
  void on_connect();
  void on_request(int fd);
  void drop(int fd);

  EventLoop& loop_;
  UniqueFd socket_;
  std::string name_;
  std::mutex mu_;
  const HostDirectory* directory_ = nullptr;               // guarded by mu_
  ProcessRef self_;                                        // guarded by mu_
  std::array<int, kDescriptorKinds> offered_{-1, -1, -1};  // guarded by mu_
  std::map<std::uint64_t, UniqueFd> pending_;              // loop thread only; by age
  std::uint64_t next_age_ = 0;                             // loop thread only
};

// Asks `process` for its descriptors. Blocks until it answers or until `deadline_ns` of monotonic_ns(); the
// answer comes from its service thread, so a stopped process lets the deadline pass.
// Errors: unreachable (not live, or nobody listens any more), timeout, permission (the other end is not of
// our user, or does not know the directory), corrupt (malformed answer), system.
Result<Descriptors> fetch_descriptors(const HostDirectory& directory, ProcessRef process,
                                      std::int64_t deadline_ns);

}  // namespace orrery::job
