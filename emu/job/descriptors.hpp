// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/event_loop.hpp"
#include "emu/base/status.hpp"
#include "emu/base/unique_fd.hpp"
#include "emu/job/host_directory.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace orrery::job {

// What a process hands to its peers. The order is the wire's. Append only.
enum class DescriptorKind : std::uint8_t { nic_segment = 0, memory_file = 1, doorbell = 2, clock = 3 };
inline constexpr int kDescriptorKinds = 4;

// Descriptors of a peer; those that it does not offer are empty.
struct Descriptors {
  UniqueFd nic_segment;
  UniqueFd memory_file;
  UniqueFd doorbell;
  UniqueFd clock;  // the job's; PE 0 alone offers it
};

// Hands this process's descriptors to processes of the same user that can read the same directory, over a
// Unix socket (abstract_socket.hpp). Owns the socket; the offered descriptors stay the caller's, and must
// stay open.
//   1. Runs on the loop thread; a client that says nothing costs one of 64 pending places, oldest out first.
//   2. A peer gets descriptors only after its uid (SO_PEERCRED), the directory's secret and the slot's
//      request nonce were checked; any other peer is disconnected without an answer.
//   3. The directory itself is handed out only after share_directory(), to the same user.
//   4. A kill leaves nothing behind but the socket's file, if its name is one of socket_folder.hpp.
// Usage: auto s = DescriptorServer::listen(loop, name);  directory.join({.rank = 0, .socket_name = name});
//        s.value()->serve(directory, self);
class DescriptorServer {
 public:
  // Binds and listens at `name` (at most layout::kSocketNameBytes bytes, no leading zero).
  // Clients can connect from now on and are answered after serve().
  // Errors: no_resource (the name is taken), system.
  static Result<std::unique_ptr<DescriptorServer>> listen(EventLoop& loop, std::string_view name);
  ~DescriptorServer();
  DescriptorServer(const DescriptorServer&) = delete;
  DescriptorServer& operator=(const DescriptorServer&) = delete;

  const std::string& socket_name() const { return name_; }
  // Answers from now on as `self` of `directory`, which must outlive this. An invalid `self` has no
  // descriptors to give and serves for share_directory() only.
  Status serve(const HostDirectory& directory, ProcessRef self);
  // Offers `fd` (not owned) as `kind`; -1 takes the offer back. Any thread.
  void offer(DescriptorKind kind, int fd);
  // Hands the directory itself to processes of the same user that ask.
  void share_directory();

 private:
  explicit DescriptorServer(EventLoop& loop) : loop_(loop) {}
  void keep_spare();
  void set_starved(bool starved);
  void on_connect();
  void on_request(int fd);
  void answer(int fd);

  EventLoop& loop_;
  UniqueFd socket_;
  // Of the loop thread, once served.
  UniqueFd spare_;        // a place kept to answer a peer when descriptors are used up
  bool starved_ = false;  // that one is taken as well: connections that wait do not wake us, a new one does
  std::string name_;
  pid_t owner_ = 0;
  std::mutex mu_;
  const HostDirectory* directory_ = nullptr;                   // guarded by mu_
  ProcessRef self_;                                            // guarded by mu_
  bool share_ = false;                                         // guarded by mu_
  std::array<int, kDescriptorKinds> offered_{-1, -1, -1, -1};  // guarded by mu_
  std::deque<UniqueFd> pending_;                               // loop thread only; oldest first
};

// Asks `process` for its descriptors. Blocks until it answers or until `deadline_ns` of monotonic_ns(); the
// answer comes from its service thread, so a stopped process lets the deadline pass.
// Errors: unreachable (not live, or it listens no more), timeout, permission (the other end is not of
// our user, or refused us), corrupt (malformed answer, or one that does not know the directory), system.
Result<Descriptors> fetch_descriptors(const HostDirectory& directory, ProcessRef process,
                                      std::int64_t deadline_ns);

// Asks the process that listens at `name` for its directory. Errors: as above, and not_done: it hung up
// without an answer, because it shares none (yet) or is just ending.
Result<UniqueFd> fetch_directory(std::string_view name, std::int64_t deadline_ns);

// Asks the launcher that listens at `name` (entrance.hpp) for the end of the PMI-1 wire of `rank`. Errors: as
// fetch_directory(); not_done: a process of that rank speaks to it already, or there is no such rank.
Result<UniqueFd> fetch_pmi(std::string_view name, std::uint32_t rank, std::int64_t deadline_ns);

}  // namespace orrery::job
