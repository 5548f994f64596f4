// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Datagrams to processes that share no memory with us: one after the other is asked whether it has a post
// that meets ours. docs/wire.md, "Datagrams".
#include "emu/nic/nic.hpp"

#include <algorithm>
#include <climits>
#include <cstring>

namespace orrery::nic {

wire::PacketHeader DatagramUnit::header_of(const DatagramPost& post) const {
  wire::PacketHeader header;
  header.verb = wire::Verb::datagram;
  header.command =
      static_cast<std::uint8_t>(post.wildcard.load(std::memory_order_relaxed) != 0 ? DatagramCommand::wildcard
                                                                                   : DatagramCommand::bound);
  header.source = self_.slot;
  header.domain = post.domain.load(std::memory_order_relaxed);
  header.payload_bytes = post.out_bytes.load(std::memory_order_relaxed);
  header.event_data = post.from.load(std::memory_order_relaxed);
  header.operand[0] = post.to.load(std::memory_order_relaxed);
  return header;
}

// A wildcard with one process: true when it met a post of it. One that is reached by the wire is put down for
// later.
bool DatagramUnit::meet(std::uint32_t index, wire::ProcessSlot slot, std::vector<ProcessName>* by_wire) {
  const auto process = services_.process_in(slot);
  if (!process.ok()) return false;
  const auto peer = hooks_.connect(process.value());
  if (!peer.ok()) return false;
  if (!peer.value()->link.by_wire) return match_at(index, *peer.value());
  by_wire->push_back(process.value());
  return false;
}

// ---- which processes are to be asked ----

DatagramUnit::WireSource DatagramUnit::source_of(std::uint32_t index, wire::ProcessSlot slot) const {
  const DatagramPost& post = post_at(index);
  return {post.from.load(std::memory_order_relaxed), post.domain.load(std::memory_order_relaxed), slot};
}

void DatagramUnit::note_source(const wire::PacketHeader& header) {
  if (header.command != static_cast<std::uint8_t>(DatagramCommand::bound)) return;
  const std::lock_guard lock(sources_mu_);
  if (ports_.contains({header.operand[0], header.domain, 0}))
    sources_.insert({header.operand[0], header.domain, header.source});
  else if (header.source < others_.size())
    others_.set(header.source);
}

// The port of a wildcard has sources of its own from now on. Processes that posted to ports that had none may
// have posted to this one: they are asked once.
void DatagramUnit::note_port(std::uint32_t index) {
  const std::lock_guard lock(sources_mu_);
  if (!ports_.insert(source_of(index, 0)).second) return;
  for (std::size_t slot = 0; slot < others_.size(); ++slot)
    if (others_.test(slot)) sources_.insert(source_of(index, static_cast<wire::ProcessSlot>(slot)));
}

std::size_t DatagramUnit::sources_for_test() const {
  const std::lock_guard lock(sources_mu_);
  return sources_.size();
}

// The processes that may have a post for a wildcard.
std::vector<wire::ProcessSlot> DatagramUnit::sources_by_wire(std::uint32_t index) const {
  const WireSource first = source_of(index, 0);
  std::vector<wire::ProcessSlot> slots;
  const std::lock_guard lock(sources_mu_);
  for (auto i = sources_.lower_bound(first);
       i != sources_.end() && i->port == first.port && i->domain == first.domain; ++i)
    slots.push_back(i->slot);
  return slots;
}

bool DatagramUnit::any_source() const {
  const std::lock_guard lock(sources_mu_);
  return !sources_.empty();
}

bool DatagramUnit::may_have_one_for(std::uint32_t index, wire::ProcessSlot slot) const {
  const std::lock_guard lock(sources_mu_);
  return sources_.contains(source_of(index, slot));
}

// REQUIRES: the post is asking: a packet of a post that was made since the process answered is told to come
// again, and notes its source again, after this.
void DatagramUnit::has_none_for(std::uint32_t index, wire::ProcessSlot slot) {
  const std::lock_guard lock(sources_mu_);
  sources_.erase(source_of(index, slot));
}

// Takes away the mark that the post is to be looked at again, if it has it: the caller goes through
// match_in_hand() with the serial. Under one lock with the sign that it is in hand, which a younger
// wildcard looks for: one that saw neither would ask before this one.
std::optional<std::uint64_t> DatagramUnit::take_in_hand(std::uint32_t index) {
  Record& record = records_[index];
  const std::lock_guard lock(mu_);
  // Acquire: what exchanged() left in the record.
  if (!record.look_again.exchange(false, std::memory_order_acquire)) return std::nullopt;
  ++record.in_hand.threads;
  return record.in_hand.serial;
}

void DatagramUnit::match_in_hand(std::uint32_t index, std::uint64_t serial) {
  match(index);
  Record& record = records_[index];
  const std::lock_guard lock(mu_);
  // Another serial: it ended, and another post has its place.
  if (record.in_hand.serial == serial) --record.in_hand.threads;
}

// Of the wildcards of its port that are older than this one the oldest that has not had its answer, or that
// a thread is about to ask for.
std::optional<std::uint32_t> DatagramUnit::oldest_that_asks(std::uint32_t index) const {
  std::uint64_t before = post_at(index).order.load(std::memory_order_relaxed);
  std::optional<std::uint32_t> oldest;
  const std::lock_guard lock(mu_);
  const bool may_ask = any_source();
  const std::uint32_t count = state_.count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    const DatagramPost& other = post_at(i);
    const std::uint64_t order = other.order.load(std::memory_order_relaxed);
    if (i == index || records_[i].port != records_[index].port || order >= before ||
        other.wildcard.load(std::memory_order_relaxed) == 0)
      continue;
    const PostState state = post_word::state(other.word.load(std::memory_order_acquire));
    const bool has_its_turn = records_[i].look_again.load(std::memory_order_relaxed) ||
                              (may_ask && records_[i].in_hand.threads != 0);
    if (state != PostState::asking && (state != PostState::pending || !has_its_turn)) continue;
    oldest = i;
    before = order;
  }
  return oldest;
}

// Sends the post to the last of those that are to be asked.
void DatagramUnit::ask_next(std::uint32_t index) {
  Record& record = records_[index];
  DatagramPost& post = post_at(index);
  const bool wildcard = post.wildcard.load(std::memory_order_relaxed) != 0;
  while (!record.to_ask.empty()) {
    const ProcessName& next = record.to_ask.back();
    // An older wildcard was told meanwhile that there is nothing: what was posted there since comes here, and
    // meets the older one. This one, asking now, could be given it instead.
    const bool worth_it = !wildcard || may_have_one_for(index, next.slot);
    const auto peer = worth_it ? hooks_.connect(next) : Result<Peer*>(Errc::no_match);
    if (!peer.ok()) {
      record.to_ask.pop_back();
      continue;
    }
    std::uint64_t word = post.word.load(std::memory_order_seq_cst);
    const std::uint64_t asking = post_word::with(word, PostState::asking);
    if (post_word::state(word) != PostState::pending ||
        !post.word.compare_exchange_strong(word, asking, std::memory_order_seq_cst)) {
      // A partner came first, or is at it: settle() sees what becomes of it.
      record.look_again.store(true, std::memory_order_release);
      return;
    }
    wire::PacketHeader header = header_of(post);
    header.length = sizeof(DatagramReply);  // of the answer
    const Completion told{.value = index,
                          .context = reinterpret_cast<void*>(std::uintptr_t{post_word::serial(word)}),
                          .listener = this};
    const Errc sent = hooks_.send(*peer.value(), header, {post.out, header.payload_bytes}, told);
    if (sent == Errc::not_done) return;  // its answer comes to exchanged()
    std::uint64_t mine = asking;
    post.word.compare_exchange_strong(mine, word, std::memory_order_seq_cst);
    if (sent == Errc::no_resource) {
      record.look_again.store(true, std::memory_order_release);
      return;
    }
    record.to_ask.pop_back();
  }
  record.in_round = false;
  // The process that was asked looks for us; a post that no process is left for has failed.
  const Peer* const peer = record.peer.load(std::memory_order_relaxed);
  const std::uint64_t word = post.word.load(std::memory_order_relaxed);
  if (peer != nullptr && peer->dead.load(std::memory_order_relaxed) &&
      post_word::state(word) == PostState::pending)
    (void)end_post(view_, post, word, PostState::failed);
}

void DatagramUnit::ended(const Completion& completion, const Ending& ending) {
  DatagramReply reply;
  std::memcpy(&reply, ending.answer, sizeof reply);
  exchanged(post_of(completion), ending.status, reply);
}

void DatagramUnit::exchanged(const DatagramName& name, Errc status, const DatagramReply& reply) {
  // What is held by both sides is looked at again by the lower slot at once, by the other one later.
  constexpr std::int64_t kStepBackNs = 300'000;
  if (name.index >= kMaxDatagrams) return;
  Record& record = records_[name.index];
  DatagramPost& post = post_at(name.index);
  std::uint64_t word = post.word.load(std::memory_order_acquire);
  if (post_word::serial(word) != name.serial || post_word::state(word) != PostState::asking) return;
  const ProcessName asked = record.to_ask.back();
  if (status == Errc::ok) {
    const std::uint32_t bytes = std::min(reply.bytes, kDatagramBytes);
    std::memcpy(post.in, reply.data, bytes);
    post.in_bytes.store(static_cast<std::uint16_t>(bytes), std::memory_order_relaxed);
    post.partner.store(reply.partner, std::memory_order_relaxed);
    record.to_ask.clear();
    record.in_round = false;
    (void)end_post(view_, post, word, PostState::completed);
    return;
  }
  const bool busy = status == Errc::no_resource;
  if (!busy) {
    record.to_ask.pop_back();
    if (status == Errc::not_done && post.wildcard.load(std::memory_order_relaxed) != 0)
      has_none_for(name.index, asked.slot);
  }
  record.not_before_ns.store(busy && asked.slot < self_.slot ? monotonic_ns() + kStepBackNs : 0,
                             std::memory_order_relaxed);
  const bool more = !record.to_ask.empty() || status == Errc::unreachable;
  if (!more) record.in_round = false;
  // Before the post can be met again: a younger one must see that it still has its turn.
  if (more) record.look_again.store(true, std::memory_order_release);
  post.word.compare_exchange_strong(word, post_word::with(word, PostState::pending),
                                    std::memory_order_seq_cst);
  if (more) wake();
}

// Lets waiters look again.
void DatagramUnit::wake() {
  if (state_.waiters.load(std::memory_order_seq_cst) == 0) return;
  state_.signal.fetch_add(1, std::memory_order_release);
  futex_wake(state_.signal, INT_MAX);
}

// ---- posts that may be in hand ----

bool DatagramUnit::is_open(const Endpoint& endpoint) const {
  const auto which = post_of(endpoint, std::nullopt);
  return which &&
         post_word::waits(post_word::state(post_at(which->index).word.load(std::memory_order_acquire)));
}

bool DatagramUnit::is_busy(const Endpoint& endpoint) const {
  const auto which = post_of(endpoint, std::nullopt);
  return which &&
         post_word::state(post_at(which->index).word.load(std::memory_order_acquire)) == PostState::claimed;
}

// Takes the post off its endpoint, for one of the threads that try: the place and the partner's bytes are the
// caller's until release(). False: it has not ended, or another thread was first.
bool DatagramUnit::claim_ended(Endpoint& endpoint, const Named& which, PostState* end) {
  DatagramPost& post = post_at(which.index);
  // Acquire: the partner's bytes.
  std::uint64_t word = post.word.load(std::memory_order_acquire);
  *end = post_word::state(word);
  if (post_word::serial(word) != which.serial || !post_word::has_ended(*end)) return false;
  if (!post.word.compare_exchange_strong(word, post_word::with(word, PostState::free),
                                         std::memory_order_acq_rel))
    return false;
  std::uint32_t named = which.index + 1;
  // Else it was forgotten meanwhile: the place is among the stuck ones.
  return endpoint.datagram.compare_exchange_strong(named, 0, std::memory_order_acq_rel);
}

}  // namespace orrery::nic
