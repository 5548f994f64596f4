// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery::wire {

// Ends TCP connections that others have made to a listening socket of this process and that say nothing:
// libfabric keeps a descriptor for each until its first message comes, however long that takes. A
// connection that is not among the welcome ones is shut down when it is older than kPatienceNs, sooner when
// there are many; libfabric sees that as the other end's leaving and closes it. One thread at a time.
class Uninvited {
 public:
  static constexpr std::int64_t kPatienceNs = 2'000'000'000;
  // With more than so many a connection has kShortPatienceNs, with four times as many none.
  static constexpr std::size_t kFew = 64;
  static constexpr std::int64_t kShortPatienceNs = 50'000'000;

  // `listening`: the socket's own address, a sockaddr_in or sockaddr_in6; of any other kind sweep() does
  // nothing.
  explicit Uninvited(std::span<const std::byte> listening);

  // Whether it is time to sweep: some while after the last time, or at once when descriptors have become
  // many.
  bool is_due(std::int64_t now_ns) const;
  // `welcome`: addresses of the other ends of connections that have been accepted. Returns how many were
  // shut down.
  int sweep(std::span<const std::vector<std::byte>> welcome, std::int64_t now_ns);

 private:
  struct Seen {
    int fd;
    std::vector<std::byte> from;
    std::int64_t first_ns;
  };
  std::vector<std::byte> listening_;
  std::vector<Seen> seen_;
  std::int64_t swept_ns_ = 0;
  int lowest_free_ = -1;  // after the last sweep
};

}  // namespace orrery::wire
