// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/job/job.hpp"

#include <cstdint>
#include <optional>
#include <vector>

// Which instances of a node have joined the queue that they share. Each publishes a word in the job's
// directory, as an endpoint of a domain that no client can have, and a mark in a second such domain: the word
// again once it has seen all of them, the word's complement once it was refused.
//
// - An instance keeps its word until all others have seen it (may_leave()): what leaves early would be waited
//   for without end.
// - The words of a queue that was left are remembered: one that is still there has not joined the next queue.
// - An instance that is refused keeps its word until it joins again, so that the others are refused too.
namespace orrery::gni {

// What a word says: 31..16 generation of the instance's channel | 15..10 its index | 9..0 of its attributes.
namespace queue_word {
inline constexpr std::uint32_t kDigestMask = 0x3ff;
constexpr std::uint32_t make(std::uint16_t generation, std::uint16_t channel, std::uint32_t digest) {
  return std::uint32_t{generation} << 16 | std::uint32_t{channel} << 10 | (digest & kDigestMask);
}
constexpr std::uint32_t digest_of(std::uint32_t word) { return word & kDigestMask; }
}  // namespace queue_word

// Of one attachment, for all queues that it joins one after another. Threads: one at a time.
class QueueMembership {
 public:
  // `domain` is the client's.
  QueueMembership(job::Job& job, job::DomainId domain, std::uint32_t nic_address, std::uint32_t instance)
      : job_(job), domain_(domain), nic_address_(nic_address), instance_(instance) {}
  ~QueueMembership();
  QueueMembership(const QueueMembership&) = delete;
  QueueMembership& operator=(const QueueMembership&) = delete;

  struct Member {
    job::ProcessRef process;
    std::uint32_t instance = 0;
    std::uint32_t word = 0;
  };

  // Begins to join. Errors: as job::Job::declare_domain() and publish().
  Errc announce(std::uint32_t word);
  // Whether `expected` instances, this one among them, have joined; then members() has them.
  // Errors: not_done, invalid_param (one has other attributes), no_resource (there are more). After one of
  // the last two nothing is joined.
  Errc look(std::uint32_t expected);
  const std::vector<Member>& members() const { return members_; }

  // Whether each member has seen all others, or is gone.
  bool may_leave() const;
  // Takes the word back. Of no effect when there is none.
  void withdraw();

 private:
  struct Former {
    Member member;
    bool left = false;  // was in a queue with this one, or was refused then; else: seen when this one was
  };
  const Former* find_former(const Member& member) const;
  std::optional<std::uint32_t> mark_of(std::uint32_t instance) const;
  void set_mark(std::uint32_t mark);
  void take_back();
  void remember_refusal(const std::vector<Member>& others);

  job::Job& job_;
  const job::DomainId domain_;
  const std::uint32_t nic_address_;
  const std::uint32_t instance_;
  job::DomainId words_ = 0;
  job::DomainId marks_ = 0;
  std::uint32_t word_ = 0;
  std::optional<job::EndpointRef> published_;
  std::optional<job::EndpointRef> marked_;
  bool refused_ = false;
  std::vector<Member> members_;
  std::vector<Former> former_;
};

}  // namespace orrery::gni
