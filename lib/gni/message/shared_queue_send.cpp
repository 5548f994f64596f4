// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/message/shared_queue.hpp"

#include "emu/base/wait.hpp"

#include <algorithm>
#include <cstring>

// Messages of a shared queue on their way out.
namespace orrery::gni {

namespace {

// How long a message by frame may keep its sender, before its fate is left to a later call.
constexpr std::int64_t kOutcomeNs = 100'000'000;

}  // namespace

const QueueMember* SharedQueue::find_member(std::uint32_t address, std::uint32_t instance) {
  const auto found = connections_.find(address);
  if (found == connections_.end() || found->second.expected == 0 ||
      found->second.members.size() < found->second.expected)
    return nullptr;
  const auto& members = found->second.members;
  const auto at = std::find_if(members.begin(), members.end(),
                               [&](const QueueMember& member) { return member.instance == instance; });
  return at == members.end() ? nullptr : &*at;
}

Errc SharedQueue::send(std::uint32_t address, std::uint32_t instance, const Outgoing& message) {
  if (message.header.size() + message.data.size() > attrs_.max_msg_sz) return Errc::size;
  const QueueMember* member = find_member(address, instance);
  if (member == nullptr) {
    (void)collect();  // an instance may have told us of it
    member = find_member(address, instance);
    if (member == nullptr) return Errc::no_match;
  }
  if (!settle()) return Errc::not_done;
  std::uint32_t transaction = nic::CompletionQueue::kNone;
  if (source_ != nullptr) {
    transaction = source_->queue->open_post(nullptr);
    if (transaction == nic::CompletionQueue::kNone) return Errc::no_resource;
  }
  return launch(*connections_[address].endpoint, member->channel,
                {.kind = QueuedHeader::kMessage, .tag = message.tag}, message, transaction);
}

// Sends, and waits a moment for the answer; on not_done and errors nothing has happened and the transaction
// is given back.
Errc SharedQueue::launch(nic::Endpoint& endpoint, const nic::MemKey& channel, const QueuedHeader& header,
                         const Outgoing& message, std::uint32_t transaction) {
  QueuedHeader complete = header;
  complete.mark = QueuedHeader::kMark;
  complete.bytes = static_cast<std::uint16_t>(message.header.size() + message.data.size());
  complete.sender_instance = attachment_.instance;
  complete.sender_address = attachment_.port->nic_address;
  flight_.endpoint = &endpoint;
  flight_.channel = channel;
  flight_.transaction = transaction;
  flight_.id = message.id;
  flight_.length = static_cast<std::uint32_t>(sizeof complete + complete.bytes);
  std::byte* at = flight_.bytes.data();
  std::memcpy(at, &complete, sizeof complete);
  at += sizeof complete;
  if (!message.header.empty()) std::memcpy(at, message.header.data(), message.header.size());
  at += message.header.size();
  if (!message.data.empty()) std::memcpy(at, message.data.data(), message.data.size());
  const Errc sent = attempt();
  if (sent != Errc::ok && transaction != nic::CompletionQueue::kNone)
    source_->queue->abandon_transaction(transaction);
  return sent;
}

// Posts what is in flight_. ok: it is there, or will be: its fate is settle()'s.
Errc SharedQueue::attempt() {
  nic::Request request;
  request.op = nic::Op::send;
  request.flags = nic::kGlobalEvent | nic::kInOrder;
  request.local_address = reinterpret_cast<std::uint64_t>(flight_.bytes.data());
  request.length = flight_.length;
  request.remote = flight_.channel;
  const Errc posted = nic_.post(*flight_.endpoint, request);
  if (posted != Errc::ok) return posted == Errc::no_resource ? Errc::not_done : posted;
  flying_ = true;
  flight_.posted = true;
  // By the program's clock: in virtual time the PEs that have the turn meanwhile may take longer in real
  // time, and what the sender is told must not depend on that.
  const std::int64_t deadline = nic_.waits().now_ns() + kOutcomeNs;
  std::optional<Errc> known = outcome();
  while (!known && nic_.waits().now_ns() < deadline) {
    yield_cpu();
    known = outcome();
  }
  if (!known || *known == Errc::ok) return Errc::ok;
  // No buffer; or no process: then it is not connected any more.
  if (*known == Errc::no_resource || *known == Errc::not_done) return Errc::not_done;
  return *known == Errc::unreachable ? *known : Errc::no_match;
}

// What became of the message in flight, if that is known; then it is no more. ok has raised its event.
std::optional<Errc> SharedQueue::outcome() {
  nic::Event event;
  if (nic_.poll(*outcomes_, &event) != Errc::ok) return std::nullopt;
  void* context = nullptr;
  (void)outcomes_->collect(event.transaction(), &context);
  flying_ = false;
  flight_.posted = false;
  if (event.status == Errc::ok && flight_.transaction != nic::CompletionQueue::kNone) {
    source_->queue->raise_inline({nic::EventKind::queued_sent, Errc::ok,
                                  flight_.id | static_cast<std::uint64_t>(flight_.transaction) << 32});
  }
  return event.status;
}

// The message in flight is lost, and its sender hears of it.
void SharedQueue::give_up(Errc why) {
  flying_ = false;
  if (flight_.transaction == nic::CompletionQueue::kNone) return;
  source_->queue->raise_inline(
      {nic::EventKind::queued_sent, why, flight_.id | static_cast<std::uint64_t>(flight_.transaction) << 32});
}

// Whether nothing is in flight. A message whose sender went on before its fate was known, and that found no
// buffer, is sent again.
bool SharedQueue::settle() {
  if (!flying_) return true;
  if (flight_.posted) {
    const std::optional<Errc> known = outcome();
    if (!known) return false;
    if (*known == Errc::ok) return true;
    flying_ = true;
    if (*known != Errc::no_resource) {
      give_up(*known);
      return true;
    }
  }
  const Errc again = attempt();
  if (again != Errc::ok && again != Errc::not_done) {
    // Its receiver has gone since: another try would end the same, and nothing would ever be idle again.
    give_up(again);
    return true;
  }
  flying_ = again != Errc::ok || flight_.posted;
  return !flying_;
}

}  // namespace orrery::gni
