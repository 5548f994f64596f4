// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// How posts end that no partner ends: cancelled, their endpoint gone, or met by themselves.
#include "emu/base/wait.hpp"
#include "emu/nic/message/datagram.hpp"
#include "emu/nic/nic.hpp"

namespace orrery::nic {

namespace {

// How long cancel() waits for the answer of a process that was just asked by the wire.
constexpr std::int64_t kAnswerNs = 1'000'000'000;

}  // namespace

Errc DatagramUnit::cancel(Endpoint& endpoint, std::optional<std::uint64_t> name) {
  const auto which = post_of(endpoint, name);
  if (!which) return Errc::no_match;
  DatagramPost& post = post_at(which->index);
  const std::int64_t answer_limit = monotonic_ns() + kAnswerNs;
  for (int patience = kDatagramPatience; patience > 0; --patience) {
    const std::uint64_t word = post.word.load(std::memory_order_acquire);
    const PostState state = post_word::state(word);
    if (post_word::serial(word) != which->serial || state == PostState::free || post_word::has_ended(state))
      return Errc::no_match;
    if (state == PostState::asking && monotonic_ns() < answer_limit) {
      hooks_.progress();
      ++patience;
    }
    if (state == PostState::pending && end_post(view_, post, word, PostState::terminated)) return Errc::ok;
    if (state == PostState::claimed && !take_back_from_the_dead(post, word)) yield_cpu();
  }
  return Errc::no_match;
}

// Ends a post to the very port that posted it, which no wildcard of that port took: the post is its own
// partner, and receives the bytes that it sends.
void DatagramUnit::meet_itself(std::uint32_t index) {
  DatagramPost& post = post_at(index);
  std::uint64_t word = post.word.load(std::memory_order_seq_cst);
  if (post_word::state(word) != PostState::pending) return;
  const std::uint64_t claimed = post_word::claimed(word, self_.slot, self_.generation);
  if (!post.word.compare_exchange_strong(word, claimed, std::memory_order_seq_cst)) return;
  const std::uint16_t bytes = post.out_bytes.load(std::memory_order_relaxed);
  if (bytes != 0) std::memcpy(post.in, post.out, bytes);
  post.in_bytes.store(bytes, std::memory_order_relaxed);
  post.partner.store(post.from.load(std::memory_order_relaxed), std::memory_order_relaxed);
  (void)end_post(view_, post, claimed, PostState::completed);
}

void DatagramUnit::forget(Endpoint& endpoint) {
  const auto which = post_of(endpoint, std::nullopt);
  if (!which) return;
  (void)cancel(endpoint, std::nullopt);
  PostState end = settle(which->index);
  if (post_word::has_ended(end)) {
    if (claim_ended(endpoint, *which, &end)) release(which->index);
    return;
  }
  // A process stopped in the middle of the exchange: the post is its own until it goes on or dies. Or another
  // thread is taking it: the thread that takes it off the endpoint gives its place back.
  std::uint32_t named = which->index + 1;
  if (!endpoint.datagram.compare_exchange_strong(named, 0, std::memory_order_acq_rel)) return;
  const std::lock_guard lock(mu_);
  records_[which->index].port = nullptr;
  stuck_.push_back(which->index);
}

void DatagramUnit::leave_behind(Endpoint& endpoint) {
  const auto which = post_of(endpoint, std::nullopt);
  if (!which) return;
  (void)cancel(endpoint, std::nullopt);
  {
    const std::lock_guard lock(mu_);
    Record& record = records_[which->index];
    const std::uint64_t word = post_at(which->index).word.load(std::memory_order_acquire);
    std::uint32_t named = which->index + 1;
    // The thread that takes the post off its endpoint gives its place back.
    if (record.named && !record.told && post_word::has_ended(post_word::state(word)) &&
        endpoint.datagram.compare_exchange_strong(named, 0, std::memory_order_acq_rel)) {
      record.left_behind = true;
      return;
    }
  }
  forget(endpoint);
}

// Whether the name of a post that ended may be given: of one whose endpoint is gone once, and its place is
// given back.
bool DatagramUnit::tell(std::uint32_t index, std::uint64_t serial) {
  const std::lock_guard lock(mu_);
  Record& record = records_[index];
  if (post_word::serial(post_at(index).word.load(std::memory_order_acquire)) != serial) return false;
  record.told = true;
  if (!record.left_behind) return true;
  if (!bury(index)) return false;
  free_.push_back(index);
  return true;
}

// Takes a post that was left behind; its place is the caller's then. REQUIRES: mu_ is held.
bool DatagramUnit::bury(std::uint32_t index) {
  DatagramPost& post = post_at(index);
  std::uint64_t word = post.word.load(std::memory_order_acquire);
  if (!post_word::has_ended(post_word::state(word)) ||
      !post.word.compare_exchange_strong(word, post_word::with(word, PostState::free),
                                         std::memory_order_acq_rel))
    return false;
  records_[index].port = nullptr;
  records_[index].left_behind = false;
  return true;
}

void DatagramUnit::forget_left_behind(const Port& port) {
  const std::lock_guard lock(mu_);
  const std::uint32_t count = state_.count.load(std::memory_order_relaxed);
  for (std::uint32_t index = 0; index < count; ++index) {
    if (records_[index].port == &port && records_[index].left_behind && bury(index)) free_.push_back(index);
  }
}

// REQUIRES: mu_ is held.
std::optional<std::uint32_t> DatagramUnit::take_oldest_left_behind() {
  std::optional<std::uint32_t> oldest;
  for (std::uint32_t index = 0; index < kMaxDatagrams; ++index) {
    if (!records_[index].left_behind) continue;
    if (!oldest || post_at(index).order.load(std::memory_order_relaxed) <
                       post_at(*oldest).order.load(std::memory_order_relaxed))
      oldest = index;
  }
  return oldest && bury(*oldest) ? oldest : std::nullopt;
}

// Whether a program that looks is not to see yet that the post, which has ended, met its partner. One that
// the program cancelled itself, or that failed, is seen at once.
bool DatagramUnit::is_held_back(std::uint32_t index) const {
  clock::Clock* const clock = services_.clock();
  return clock != nullptr &&
         post_word::state(post_at(index).word.load(std::memory_order_relaxed)) == PostState::completed &&
         clock->holds_back_datagram();
}

}  // namespace orrery::nic
