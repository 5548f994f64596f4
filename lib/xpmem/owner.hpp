// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/unique_fd.hpp"
#include "emu/nic/host/runtime.hpp"
#include "lib/xpmem/protocol.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>

namespace orrery::xpmem {

// The segments of this process, and what answers processes that want them: on the service thread, over a
// socket of their own. Never destroyed before the process ends, but stopped before the runtime is; a forked
// child makes its own.
//   1. An answer is given only to processes of this user that know the host directory's secret.
//   2. An answer to `attach` names pages that peers can map. Pages of this process's own are moved into the
//      memory file first, and stay there. Pages of a shared file stay in it: the answer carries its
//      descriptor.
// Threads: make and remove from any.
class Owner {
 public:
  explicit Owner(nic::Runtime& runtime) : runtime_(runtime) {}
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  // Begins to listen. Errors: those of the socket; the log says why.
  Status listen();
  // Stops answering; what is being answered is answered first. Not by the service thread.
  void stop();
  // A segment's number, or 0 when there are kMaxSegments.
  std::int64_t make(std::uint64_t address, std::uint64_t length, bool writable);
  // False: it is none of ours.
  bool remove(std::int64_t segment);

 private:
  struct Segment {
    std::uint32_t serial = 0;
    bool live = false;
    bool writable = false;
    std::uint64_t address = 0;
    std::uint64_t length = 0;
  };

  void on_connect();
  void on_request(int fd);
  // `file`: set when the answer has one.
  Answer answer(const Request& request, UniqueFd* file);

  nic::Runtime& runtime_;
  UniqueFd socket_;
  std::mutex mu_;
  std::array<Segment, kMaxSegments> segments_;  // guarded by mu_
  std::deque<UniqueFd> pending_;                // service thread only; oldest first
};

}  // namespace orrery::xpmem
