// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/message/datagram.hpp"

#include "emu/base/patient_wait.hpp"
#include "emu/nic/nic.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

namespace orrery::nic {

namespace {

// A blocking wait looks again at least this often: deaths and peers that attach late wake no waiter.
constexpr std::int64_t kSliceNs = 20'000'000;
// The same while one of our posts is to be looked at again.
constexpr std::int64_t kShortSliceNs = 500'000;
constexpr int kLooksAtAPost = kDatagramPatience;

// Backs off while another thread is in an exchange: that takes less than this, unless it was preempted.
void pause(int patience_left) {
  if (patience_left > kLooksAtAPost / 2)
    cpu_relax();
  else
    yield_cpu();
}

using post_word::has_ended;

}  // namespace

DatagramUnit::DatagramUnit(HostServices& services, NicView view, Hooks hooks)
    : services_(services),
      view_(view),
      state_(datagrams_of(view)),
      hooks_(std::move(hooks)),
      self_(services.self()),
      records_(kMaxDatagrams) {}

// ---- records ----

std::optional<DatagramUnit::Named> DatagramUnit::post_of(const Endpoint& endpoint,
                                                         std::optional<std::uint64_t> name) const {
  if (endpoint.datagram.load(std::memory_order_relaxed) == 0) return std::nullopt;
  // A post that its endpoint still names while this is held is not released before it is given back: the
  // record and the serial are that post's.
  const std::lock_guard lock(mu_);
  const std::uint32_t index_plus_1 = endpoint.datagram.load(std::memory_order_acquire);
  if (index_plus_1 == 0) return std::nullopt;
  const std::uint32_t index = index_plus_1 - 1;
  const Record& record = records_[index];
  if (name && (!record.named || record.name != *name)) return std::nullopt;
  return Named{index, post_word::serial(post_at(index).word.load(std::memory_order_relaxed))};
}

// REQUIRES: mu_ is held.
std::optional<std::uint32_t> DatagramUnit::allocate() {
  std::erase_if(stuck_, [this](std::uint32_t index) {
    DatagramPost& post = post_at(index);
    const std::uint64_t word = post.word.load(std::memory_order_acquire);
    if (post_word::state(word) == PostState::asking) return false;
    if (post_word::state(word) == PostState::claimed && !take_back_from_the_dead(post, word)) return false;
    // Ended, or pending again.
    std::uint64_t now = post.word.load(std::memory_order_acquire);
    if (post_word::state(now) == PostState::claimed ||
        !post.word.compare_exchange_strong(now, post_word::with(now, PostState::free)))
      return false;
    free_.push_back(index);
    return true;
  });
  if (!free_.empty()) {
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  const std::uint32_t count = state_.count.load(std::memory_order_relaxed);
  if (count == kMaxDatagrams) return take_oldest_left_behind();
  // Its word is free, so a reader that looks early finds nothing.
  state_.count.store(count + 1, std::memory_order_release);
  return count;
}

void DatagramUnit::release(std::uint32_t index) {
  const std::lock_guard lock(mu_);
  records_[index].port = nullptr;
  free_.push_back(index);
}

Errc DatagramUnit::post(Endpoint& endpoint, std::span<const std::byte> data,
                        std::optional<std::uint64_t> name, std::span<std::byte> buffer) {
  if (data.size() > kDatagramBytes) return Errc::size;
  if (endpoint.datagram.load(std::memory_order_relaxed) != 0) return Errc::no_resource;
  const Port& port = *endpoint.port;
  const bool bound = endpoint.bound;
  // Under a clock: seen by others from the time on at which it is posted.
  clock::Clock* const clock = services_.clock();
  if (clock != nullptr) {
    clock->enter();
    clock->leave();
  }
  std::uint32_t index = 0;
  std::uint64_t serial = 0;
  {
    const std::lock_guard lock(mu_);
    const std::uint32_t count = state_.count.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; bound && i < count; ++i) {
      const Record& record = records_[i];
      if (record.port != &port || record.nic_address != endpoint.remote_nic_address ||
          record.instance != endpoint.remote_instance)
        continue;
      const DatagramPost& other = post_at(i);
      const PostState state = post_word::state(other.word.load(std::memory_order_relaxed));
      // Free: its owner is taking it just now.
      if (other.wildcard.load(std::memory_order_relaxed) == 0 && state != PostState::free &&
          !has_ended(state))
        return Errc::no_resource;
    }
    const auto found = allocate();
    if (!found) return Errc::no_resource;
    index = *found;
    Record& record = records_[index];
    record.port = &port;
    record.buffer = buffer;
    record.named = name.has_value();
    record.name = name.value_or(0);
    record.left_behind = false;
    record.told = false;
    record.was_looked_at = false;
    record.look_again.store(false, std::memory_order_relaxed);
    record.peer.store(nullptr, std::memory_order_relaxed);
    record.not_before_ns.store(0, std::memory_order_relaxed);
    record.to_ask.clear();
    record.in_round = false;
    record.nic_address = endpoint.remote_nic_address;
    record.instance = endpoint.remote_instance;
    DatagramPost& post = post_at(index);
    serial = post_word::serial(post.word.load(std::memory_order_relaxed)) + 1;
    post.word.store(post_word::make(serial, PostState::preparing), std::memory_order_relaxed);
    post.order.store(next_order_++, std::memory_order_relaxed);
    post.from.store(port_word(port.nic_address, port.instance), std::memory_order_relaxed);
    post.to.store(bound ? port_word(endpoint.remote_nic_address, endpoint.remote_instance) : 0,
                  std::memory_order_relaxed);
    post.domain.store(port.domain, std::memory_order_relaxed);
    post.wildcard.store(bound ? 0 : 1, std::memory_order_relaxed);
    post.out_bytes.store(static_cast<std::uint16_t>(data.size()), std::memory_order_relaxed);
    if (!data.empty()) std::memcpy(post.out, data.data(), data.size());
    if (!bound) note_port(index);
    // Release: a claimer sees the fields. Sequentially consistent: published before partners are looked
    // for.
    post.word.store(post_word::make(serial, PostState::pending), std::memory_order_seq_cst);
    record.in_hand = {.serial = serial, .threads = 1};
  }
  endpoint.datagram.store(index + 1, std::memory_order_release);
  match_in_hand(index, serial);
  // Under a clock: a waiter for this one looks again.
  if (clock != nullptr) {
    clock->enter();
    clock->touch_all();
    clock->leave();
  }
  return Errc::ok;
}

// ---- matching ----

// Looks for the post's partner and exchanges with it; else leaves it where its partner will find it.
void DatagramUnit::match(std::uint32_t index) {
  Record& record = records_[index];
  DatagramPost& post = post_at(index);
  const bool wildcard = post.wildcard.load(std::memory_order_relaxed) != 0;
  if (wildcard) {
    // Wildcards are met in the order in which they were posted: this one waits for its turn, and since its
    // owner may ask for no other one, the one that it waits for is moved along here.
    if (const auto older = oldest_that_asks(index)) {
      record.look_again.store(true, std::memory_order_release);
      (void)settle(*older);
      return;
    }
  }
  if (record.in_round) return ask_next(index);
  std::vector<ProcessName> by_wire;
  if (!wildcard) {
    Peer* peer = record.peer.load(std::memory_order_relaxed);
    if (peer == nullptr) {
      const auto process = services_.find_port(post.domain.load(std::memory_order_relaxed),
                                               record.nic_address, record.instance);
      // Ports of other hosts are not known here: any process behind the NIC address may have it.
      if (process.code() == Errc::no_match) by_wire = services_.remote_behind(record.nic_address);
      if (process.code() == Errc::no_match && by_wire.empty()) {
        // It has not attached: its posts will be looked for again.
        record.look_again.store(true, std::memory_order_release);
        return;
      }
      if (by_wire.size() <= 1) {
        const bool cut = hooks_.is_cut(record.port->nic_address, record.nic_address);
        const auto connected = cut                   ? Result<Peer*>(Errc::unreachable)
                               : by_wire.size() == 1 ? hooks_.connect(by_wire.front())
                               : process.ok()        ? hooks_.connect(process.value())
                                                     : Result<Peer*>(process.code());
        if (!connected.ok()) {
          const std::uint64_t word = post.word.load(std::memory_order_relaxed);
          if (post_word::state(word) == PostState::pending)
            (void)end_post(view_, post, word, PostState::failed);
          return;
        }
        peer = connected.value();
        record.peer.store(peer, std::memory_order_relaxed);
        by_wire.clear();
      }
    }
    if (peer != nullptr && !peer->link.by_wire) {
      // Its wildcards look for us from now on. Sequentially consistent: before we look for them.
      auto& sources = datagrams_of(peer->link.nic).sources[self_.slot / 64];
      const std::uint64_t bit = 1ull << self_.slot % 64;
      if ((sources.load(std::memory_order_seq_cst) & bit) == 0)
        sources.fetch_or(bit, std::memory_order_seq_cst);
      const bool to_itself = peer->link.process == self_ && post.to.load(std::memory_order_relaxed) ==
                                                                post.from.load(std::memory_order_relaxed);
      if (match_at(index, *peer) || !to_itself) return;
      // At the second look: it may still be cancelled, or met by a wildcard, until its owner asks for
      // anything.
      if (record.was_looked_at) return meet_itself(index);
      record.was_looked_at = true;
      record.look_again.store(true, std::memory_order_release);
      return;
    }
    if (peer != nullptr) by_wire = {peer->link.process};
  } else {
    for (const wire::ProcessSlot slot : sources_here())
      if (meet(index, slot, &by_wire)) return;
    for (const wire::ProcessSlot slot : sources_by_wire(index))
      if (meet(index, slot, &by_wire)) return;
  }
  if (by_wire.empty()) return;
  record.to_ask = std::move(by_wire);
  record.in_round = true;
  ask_next(index);
}

// The processes of this host that have bound posts to ports here, in the order in which a wildcard looks at
// them.
std::vector<wire::ProcessSlot> DatagramUnit::sources_here() const {
  std::vector<wire::ProcessSlot> slots;
  for (std::uint32_t group = 0; group < kMaxProcesses / 64; ++group) {
    std::uint64_t bits = state_.sources[group].load(std::memory_order_seq_cst);
    for (; bits != 0; bits &= bits - 1)
      slots.push_back(
          static_cast<wire::ProcessSlot>(group * 64 + static_cast<std::uint32_t>(std::countr_zero(bits))));
  }
  if (const clock::Clock* const clock = services_.clock(); clock != nullptr)
    std::ranges::sort(slots, {}, [clock](wire::ProcessSlot slot) { return clock->place_of(slot); });
  return slots;
}

// Whether there is nothing more to be done for the post.
bool DatagramUnit::match_at(std::uint32_t index, Peer& peer) {
  DatagramPost& post = post_at(index);
  const NicView& target = peer.link.nic;
  const bool own_table = peer.link.process == self_;
  const std::uint32_t not_index = own_table ? index : UINT32_MAX;
  const wire::PacketHeader header = header_of(post);
  for (int patience = kLooksAtAPost; patience > 0;) {
    std::uint64_t word = post.word.load(std::memory_order_seq_cst);
    if (post_word::state(word) != PostState::pending) {
      if (post_word::state(word) != PostState::claimed) return post_word::state(word) != PostState::asking;
      // Our partner is at it.
      (void)take_back_from_the_dead(post, word);
      --patience;
      pause(patience);
      continue;
    }
    // Most posts come first: they look, and wait where they are.
    const auto seen = find_meeting(target, header, not_index);
    if (!seen) return false;
    // The only one that would do is being exchanged, perhaps with this very post: try it again.
    if (post_word::state(seen->word) != PostState::pending) {
      (void)take_back_from_the_dead(datagrams_of(target).posts[seen->index], seen->word);
      --patience;
      pause(patience);
      continue;
    }
    const std::uint64_t claimed = post_word::claimed(word, self_.slot, self_.generation);
    if (!post.word.compare_exchange_strong(word, claimed, std::memory_order_seq_cst)) continue;
    DatagramReply reply;
    DatagramMeeting busy;
    Errc met = Errc::no_resource;
    for (;;) {
      met = execute_datagram(target, header, {post.out, header.payload_bytes}, self_.slot, self_.generation,
                             &reply, &busy, not_index);
      if (met != Errc::no_resource) break;
      (void)take_back_from_the_dead(datagrams_of(target).posts[busy.index], busy.word);
      // Of two that hold their own and want each other's, the second steps back.
      const bool first = own_table ? index < busy.index : self_.slot < peer.link.process.slot;
      if (!first || --patience <= 0) break;
      pause(patience);
    }
    if (met == Errc::ok) {
      if (reply.bytes != 0) std::memcpy(post.in, reply.data, reply.bytes);
      post.in_bytes.store(static_cast<std::uint16_t>(reply.bytes), std::memory_order_relaxed);
      post.partner.store(reply.partner, std::memory_order_relaxed);
      (void)end_post(view_, post, claimed, PostState::completed);
      return true;
    }
    std::uint64_t mine = claimed;
    post.word.compare_exchange_strong(mine, word, std::memory_order_seq_cst);
    if (met != Errc::no_resource) continue;  // it was taken from under us: look once more
    --patience;
    pause(patience);
  }
  records_[index].look_again.store(true, std::memory_order_relaxed);
  return false;
}

// A claim whose claimer is dead: the post is pending again. False when the claimer lives.
bool DatagramUnit::take_back_from_the_dead(DatagramPost& post, std::uint64_t word) {
  if (post_word::state(word) != PostState::claimed) return false;
  const ProcessName claimer{post_word::claimer_slot(word), post_word::claimer_generation(word)};
  if (claimer.slot >= kMaxProcesses || services_.alive(claimer)) return false;
  return post.word.compare_exchange_strong(word, post_word::with(word, PostState::pending),
                                           std::memory_order_seq_cst);
}

// Brings a post of ours up to date, and says its state.
PostState DatagramUnit::settle(std::uint32_t index) {
  DatagramPost& post = post_at(index);
  Record& record = records_[index];
  for (;;) {
    const std::uint64_t word = post.word.load(std::memory_order_acquire);
    const PostState state = post_word::state(word);
    if (state == PostState::claimed) {
      if (!take_back_from_the_dead(post, word)) return state;
      record.look_again.store(true, std::memory_order_relaxed);
      continue;
    }
    if (state != PostState::pending) return state;
    const Peer* const peer = record.peer.load(std::memory_order_relaxed);
    if (peer != nullptr && peer->dead.load(std::memory_order_relaxed)) {
      (void)end_post(view_, post, word, PostState::failed);
      continue;
    }
    if (!record.look_again.load(std::memory_order_relaxed)) return state;
    const std::int64_t not_before = record.not_before_ns.load(std::memory_order_relaxed);
    if (not_before != 0 && monotonic_ns() < not_before) {
      some_look_again_.store(true, std::memory_order_relaxed);
      return state;
    }
    const auto serial = take_in_hand(index);
    if (!serial) return state;
    match_in_hand(index, *serial);
    if (record.look_again.load(std::memory_order_relaxed)) {
      some_look_again_.store(true, std::memory_order_relaxed);
      return post_word::state(post.word.load());
    }
  }
}

// ---- what became of it ----

// Errors: no_match: not ended, or another thread took it. size.
Errc DatagramUnit::take(Endpoint& endpoint, const Named& which, DatagramOutcome* outcome) {
  const std::uint32_t index = which.index;
  const DatagramPost& post = post_at(index);
  PostState state = PostState::free;
  if (!claim_ended(endpoint, which, &state)) return Errc::no_match;
  if (clock::Clock* const clock = services_.clock(); clock != nullptr) clock->datagram_taken();
  Errc result = Errc::ok;
  DatagramOutcome found;
  if (state == PostState::completed) {
    const std::uint64_t partner = post.partner.load(std::memory_order_relaxed);
    found.status = DatagramStatus::completed;
    found.remote_address = static_cast<std::uint32_t>(partner >> 32);
    found.remote_instance = static_cast<std::uint32_t>(partner);
    found.bytes = std::min<std::uint32_t>(post.in_bytes.load(std::memory_order_relaxed), kDatagramBytes);
    const std::span<std::byte> buffer = records_[index].buffer;
    if (found.bytes > buffer.size())
      result = Errc::size;
    else if (found.bytes != 0)
      std::memcpy(buffer.data(), post.in, found.bytes);
  } else {
    found.status = state == PostState::terminated ? DatagramStatus::terminated : DatagramStatus::failed;
  }
  release(index);
  if (result == Errc::ok) *outcome = found;
  return result;
}

Errc DatagramUnit::test(Endpoint& endpoint, std::optional<std::uint64_t> name, DatagramOutcome* outcome) {
  hooks_.progress();
  const auto which = post_of(endpoint, name);
  if (!which) return Errc::no_match;
  const PostState state = settle(which->index);
  if (has_ended(state) && !is_held_back(which->index)) return take(endpoint, *which, outcome);
  if (state == PostState::free) return Errc::no_match;  // another thread is taking it
  outcome->status = state == PostState::claimed ? DatagramStatus::remote_data : DatagramStatus::pending;
  return Errc::ok;
}

// Waits until `done()`; false when the deadline passed first.
template <typename Done>
bool DatagramUnit::wait_until(std::optional<std::int64_t> deadline_ns, Done done) {
  if (clock::Clock* const clock = services_.clock(); clock != nullptr && clock->is_virtual()) [[unlikely]] {
    while (!done()) {
      const std::int64_t now = clock->now().count() / 1000;
      if (deadline_ns && now >= *deadline_ns) return false;
      (void)clock->wait(deadline_ns ? std::optional(Picos{*deadline_ns * 1000}) : std::nullopt);
    }
    return true;
  }
  if (look_before_sleep(services_.wait_budget(), done, deadline_ns)) return true;
  // Announced before the posts are looked at again: see end_post.
  state_.waiters.fetch_add(1, std::memory_order_seq_cst);
  bool result = false;
  for (;;) {
    const std::uint32_t signal = state_.signal.load(std::memory_order_acquire);
    result = done();
    const std::int64_t now = monotonic_ns();
    if (result || (deadline_ns && now >= *deadline_ns)) break;
    const bool soon = some_look_again_.exchange(false, std::memory_order_relaxed);
    const std::int64_t slice = now + (soon ? kShortSliceNs : kSliceNs);
    futex_wait(state_.signal, signal, deadline_ns ? std::min(*deadline_ns, slice) : slice);
  }
  state_.waiters.fetch_sub(1, std::memory_order_relaxed);
  return result;
}

Errc DatagramUnit::wait(Endpoint& endpoint, std::optional<std::uint64_t> name,
                        std::optional<std::int64_t> deadline_ns, DatagramOutcome* outcome) {
  const auto gone_or_ended = [&] {
    hooks_.progress();
    const auto which = post_of(endpoint, name);
    if (!which) return true;
    const PostState state = settle(which->index);
    return has_ended(state) || state == PostState::free;
  };
  if (!wait_until(deadline_ns, gone_or_ended)) return Errc::timeout;
  const auto which = post_of(endpoint, name);
  return which ? take(endpoint, *which, outcome) : Errc::no_match;
}

std::optional<DatagramUnit::Ended> DatagramUnit::first_ended(const Port& port, bool named) {
  hooks_.progress();
  // Another thread may take any of them meanwhile: the serial says whether it is still the same post.
  std::vector<Ended> ours;
  {
    const std::lock_guard lock(mu_);
    const std::uint32_t count = state_.count.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (records_[i].port != &port || records_[i].named != named) continue;
      const DatagramPost& post = post_at(i);
      ours.push_back({i, records_[i].name, post_word::serial(post.word.load(std::memory_order_relaxed)),
                      post.order.load(std::memory_order_relaxed)});
    }
  }
  for (const Ended& candidate : ours) (void)settle(candidate.index);
  // The youngest first: others end posts while we look, and one that ended before a younger one that was seen
  // must be seen too.
  std::ranges::sort(ours, std::greater{}, &Ended::order);
  std::optional<Ended> first;
  for (const Ended& candidate : ours) {
    const std::uint64_t word = post_at(candidate.index).word.load(std::memory_order_acquire);
    if (post_word::serial(word) == candidate.serial && has_ended(post_word::state(word))) first = candidate;
  }
  return first;
}

Errc DatagramUnit::probe(const Port& port, DatagramOutcome* outcome) {
  const auto ended = first_ended(port, false);
  if (!ended || is_held_back(ended->index)) return Errc::no_match;
  const DatagramPost& post = post_at(ended->index);
  const bool met = post_word::state(post.word.load(std::memory_order_acquire)) == PostState::completed;
  const std::uint64_t who =
      met ? post.partner.load(std::memory_order_relaxed) : post.to.load(std::memory_order_relaxed);
  outcome->remote_address = static_cast<std::uint32_t>(who >> 32);
  outcome->remote_instance = static_cast<std::uint32_t>(who);
  return Errc::ok;
}

Errc DatagramUnit::probe_named(const Port& port, std::uint64_t* name) {
  return find_named(port, name, false);
}

Errc DatagramUnit::find_named(const Port& port, std::uint64_t* name, bool waits) {
  for (;;) {
    const auto ended = first_ended(port, true);
    if (!ended || (!waits && is_held_back(ended->index))) return Errc::no_match;
    *name = ended->name;
    if (tell(ended->index, ended->serial)) return Errc::ok;
  }
}

Errc DatagramUnit::probe_wait_named(const Port& port, std::optional<std::int64_t> deadline_ns,
                                    std::uint64_t* name) {
  return wait_until(deadline_ns, [&] { return find_named(port, name, true) == Errc::ok; }) ? Errc::ok
                                                                                           : Errc::timeout;
}

}  // namespace orrery::nic
