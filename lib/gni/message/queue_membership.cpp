// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/message/queue_membership.hpp"

#include "emu/base/log.hpp"

#include <algorithm>

#include <gni_pub.h>

namespace orrery::gni {

namespace {

// The domains' cookies are of the loopback's key, which no client can have.
constexpr std::uint32_t kWords = 0xffff'0000;
constexpr std::uint32_t kMarks = 0xffff'8000;

}  // namespace

QueueMembership::~QueueMembership() { take_back(); }

void QueueMembership::take_back() {
  if (published_) job_.withdraw(*published_);
  if (marked_) job_.withdraw(*marked_);
  published_.reset();
  marked_.reset();
}

Errc QueueMembership::announce(std::uint32_t word) {
  take_back();
  refused_ = false;
  members_.clear();
  const auto words = job_.declare_domain(GNI_PTAG_LB, kWords | domain_);
  if (!words.ok()) return words.code();
  const auto marks = job_.declare_domain(GNI_PTAG_LB, kMarks | domain_);
  if (!marks.ok()) return marks.code();
  words_ = words.value();
  marks_ = marks.value();
  const auto published = job_.publish(words_, instance_, word);
  if (!published.ok()) return published.code();
  published_ = published.value();
  word_ = word;
  return Errc::ok;
}

const QueueMembership::Former* QueueMembership::find_former(const Member& member) const {
  const auto found = std::find_if(former_.begin(), former_.end(), [&](const Former& former) {
    return former.member.instance == member.instance && former.member.word == member.word &&
           former.member.process == member.process;
  });
  return found == former_.end() ? nullptr : &*found;
}

std::optional<std::uint32_t> QueueMembership::mark_of(std::uint32_t instance) const {
  const auto found = job_.directory().find_endpoint({marks_, nic_address_, instance});
  if (!found.ok()) return std::nullopt;
  return found.value().nic_index;
}

void QueueMembership::set_mark(std::uint32_t mark) {
  const auto marked = job_.publish(marks_, instance_, mark);
  if (marked.ok()) marked_ = marked.value();
}

void QueueMembership::remember_refusal(const std::vector<Member>& others) {
  for (const Member& other : others)
    if (find_former(other) == nullptr) former_.push_back({other, false});
  refused_ = true;
  set_mark(~word_);
}

Errc QueueMembership::look(std::uint32_t expected) {
  std::vector<Member> joined;
  std::vector<Member> others;
  bool differs = false;
  for (const job::Endpoint& endpoint : job_.directory().endpoints_at(words_, nic_address_)) {
    const Member member{endpoint.process, endpoint.key.instance, endpoint.nic_index};
    if (member.instance == instance_) {
      joined.push_back(member);
      continue;
    }
    others.push_back(member);
    const std::optional<std::uint32_t> mark = mark_of(member.instance);
    const bool is_refused = mark == ~member.word;
    const bool fits = queue_word::digest_of(member.word) == queue_word::digest_of(word_);
    const Former* const former = find_former(member);
    // One that this one met when both were refused joins again by another word, unless it has a queue.
    const bool is_old = former != nullptr && (former->left || (!fits && mark != member.word));
    if (is_old || (fits && is_refused)) continue;
    if (!fits) {
      if (!differs)
        log::error("instance {} of this node has joined the message queue with other attributes than {}",
                   member.instance, instance_);
      differs = true;
      continue;
    }
    joined.push_back(member);
  }
  if (differs) {
    remember_refusal(others);
    return Errc::invalid_param;
  }
  if (joined.size() > expected) {
    log::error("{} instances of this node have joined the message queue, which has room for {}",
               joined.size(), expected);
    return Errc::no_resource;
  }
  if (joined.size() < expected) return Errc::not_done;
  std::sort(joined.begin(), joined.end(),
            [](const Member& a, const Member& b) { return a.instance < b.instance; });
  members_ = std::move(joined);
  set_mark(word_);
  return Errc::ok;
}

bool QueueMembership::may_leave() const {
  return std::all_of(members_.begin(), members_.end(), [&](const Member& member) {
    if (member.instance == instance_) return true;
    const auto there = job_.directory().find_endpoint({words_, nic_address_, member.instance});
    if (!there.ok() || there.value().nic_index != member.word || there.value().process != member.process)
      return true;
    return mark_of(member.instance) == member.word;
  });
}

void QueueMembership::withdraw() {
  // A refused one stays.
  if (!published_ || refused_) return;
  if (!members_.empty()) {
    former_.clear();
    for (const Member& member : members_) former_.push_back({member, true});
    for (const job::Endpoint& endpoint : job_.directory().endpoints_at(words_, nic_address_)) {
      const Member member{endpoint.process, endpoint.key.instance, endpoint.nic_index};
      if (mark_of(member.instance) == ~member.word) former_.push_back({member, true});
    }
    members_.clear();
  }
  take_back();
}

}  // namespace orrery::gni
