// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/message/shared_queue.hpp"

#include "emu/base/log.hpp"
#include "emu/base/wait.hpp"
#include "lib/gni/domain/mem_handle.hpp"
#include "lib/gni/message/channel_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <new>

#include <sys/mman.h>

namespace orrery::gni {

namespace {

// How long the end of a queue waits for what is on its way.
constexpr std::int64_t kLeaveNs = 100'000'000;
// How long the end of a queue that was not released waits for the instances that have not seen it yet.
constexpr std::int64_t kSeenNs = 10'000'000'000;
// How long an instance of our own node may leave us without a buffer when we tell it of a connection.
constexpr std::int64_t kTellNs = 2'000'000'000;
// Where processes share cores a wait lasts at least so long: a peer gets its turn in it.
constexpr std::int64_t kCrowdedWaitNs = 100'000'000;
constexpr std::int64_t kLookNs = 200'000;
constexpr std::uint32_t kDoNotWait = UINT32_MAX;

static_assert(nic::kMaxChannels <= 64);  // queue_word has six bits for the index

std::uint32_t digest_of(const gni_msgq_attr_t& attrs) {
  std::uint32_t sum = 2'166'136'261;
  for (const std::uint32_t word : {attrs.max_msg_sz, attrs.smsg_q_sz, attrs.rcv_pool_sz, attrs.num_msgq_eps,
                                   attrs.nloc_insts, std::uint32_t{attrs.modes}, attrs.rcv_cq_sz}) {
    for (int shift = 0; shift < 32; shift += 8) sum = (sum ^ (word >> shift & 0xff)) * 16'777'619;
  }
  return (sum ^ sum >> 10 ^ sum >> 20) & queue_word::kDigestMask;
}

std::span<const std::byte> as_bytes(const auto& value) {
  return {reinterpret_cast<const std::byte*>(&value), sizeof value};
}

// A piece of what an instance tells the others of its node about a connection.
struct ConnectPiece {
  std::uint32_t address = 0;
  std::uint32_t expected = 0;
  std::uint32_t count = 0;
  std::uint32_t unused = 0;
  struct Member {
    std::uint64_t handle[2] = {};
    std::uint32_t instance = 0;
    std::uint32_t unused = 0;
  };
  std::array<Member, 4> members{};
};
static_assert(sizeof(ConnectPiece) <= GNI_MSGQ_MSG_SZ_MAX);

void nap() {
  const timespec moment{0, kLookNs};
  nanosleep(&moment, nullptr);
}

}  // namespace

bool SharedQueue::valid(const gni_msgq_attr_t& attrs) {
  return attrs.max_msg_sz != 0 && attrs.max_msg_sz <= GNI_MSGQ_MSG_SZ_MAX && attrs.smsg_q_sz != 0 &&
         (attrs.smsg_q_sz == 1 || attrs.smsg_q_sz % 2 == 0) && attrs.num_msgq_eps != 0 &&
         attrs.nloc_insts != 0 && attrs.nloc_insts <= GNI_MSGQ_NODE_INSTS_MAX &&
         (attrs.modes & ~GNI_MSGQ_MODE_BLOCKING) == 0;
}

// All of a channel's buffers are posted: senders share them, however many they are.
std::uint64_t SharedQueue::bytes_of(const gni_msgq_attr_t& /*attrs*/) {
  return std::uint64_t{nic::kMaxReceives} * kStride;
}

SharedQueue::SharedQueue(Attachment& attachment, const gni_msgq_attr_t& attrs, Cq* source,
                         gni_msgq_rcv_cb_func* callback, void* callback_data)
    : attachment_(attachment),
      nic_(*attachment.nic),
      attrs_(attrs),
      source_(source),
      callback_(callback),
      callback_data_(callback_data) {
  if (source_ != nullptr) source_->queue->references.fetch_add(1, std::memory_order_relaxed);
}

Result<std::unique_ptr<SharedQueue>> SharedQueue::join(Attachment& attachment, const gni_msgq_attr_t& attrs,
                                                       Cq* source, gni_msgq_rcv_cb_func* callback,
                                                       void* callback_data) {
  std::unique_ptr<SharedQueue> queue(new (std::nothrow)
                                         SharedQueue(attachment, attrs, source, callback, callback_data));
  if (queue == nullptr) return Errc::no_memory;
  Errc done = queue->open();
  if (done == Errc::ok) done = queue->publish();
  if (done == Errc::ok) done = queue->await_members();
  if (done != Errc::ok) return done;
  return queue;
}

// The channel, its memory and its queues.
Errc SharedQueue::open() {
  const nic::Port& ours = *attachment_.port;
  port_ = nic_.open_port(ours.domain, ours.nic_address, ours.instance);
  const std::uint64_t bytes = bytes_of(attrs_);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Errc::no_memory;
  memory_ = static_cast<std::byte*>(memory);
  const auto region =
      nic_.register_region(*attachment_.port, reinterpret_cast<std::uint64_t>(memory_), bytes, 0, nullptr);
  if (!region.ok()) return region.code();
  region_ = region.value();
  const auto arrivals = nic_.create_queue(2 * nic::kMaxReceives, 0);
  if (!arrivals.ok()) return arrivals.code();
  arrivals_ = arrivals.value();
  const auto outcomes = nic_.create_queue(8, 0);
  if (!outcomes.ok()) return outcomes.code();
  outcomes_ = outcomes.value();
  outcomes_->become_source();
  const auto channel = nic_.channels().open(*attachment_.port, arrivals_);
  if (!channel.ok()) return channel.code();
  channel_ = channel.value();
  // Handles carry 14 bits of a generation.
  if (channel_->generation > nic::kMaxGeneration) return Errc::no_resource;
  for (std::uint32_t i = 0; i < nic::kMaxReceives; ++i) {
    std::byte* const at = memory_ + std::size_t{i} * kStride;
    const Errc posted =
        nic_.channels().post(*channel_, region_, reinterpret_cast<std::uint64_t>(at), kStride, at);
    if (posted != Errc::ok) return posted;
  }
  here_endpoint_ = make_endpoint(attachment_.port->nic_address);
  ask_for_direct(nic_, *here_endpoint_, region_, memory_);
  return Errc::ok;
}

Errc SharedQueue::publish() {
  if (attachment_.queue_membership == nullptr) {
    attachment_.queue_membership = std::make_shared<QueueMembership>(
        *attachment_.job, attachment_.port->domain, attachment_.port->nic_address, attachment_.instance);
  }
  membership_ = attachment_.queue_membership.get();
  return membership_->announce(queue_word::make(channel_->generation, channel_->index, digest_of(attrs_)));
}

// Waits until as many instances of this node have published their queues as the attributes say.
Errc SharedQueue::await_members() {
  const Sleep here(attachment_, "GNI_MsgqInit");
  for (std::uint32_t patience = 0;; ++patience) {
    const Errc joined = membership_->look(attrs_.nloc_insts);
    if (joined == Errc::ok) break;
    if (joined != Errc::not_done) return joined;
    // Under a clock the others come in its time, which passes while we look.
    if (nic_.clock() != nullptr) nic_.progress();
    patience < 100 ? yield_cpu() : nap();
  }
  for (const QueueMembership::Member& member : membership_->members()) {
    const nic::ChannelName name{static_cast<std::uint16_t>(member.process.index),
                                static_cast<std::uint16_t>(member.word >> 10 & 0x3f),
                                static_cast<std::uint16_t>(member.word >> 16)};
    here_.push_back({member.instance, nic::key_of(name)});
  }
  return Errc::ok;
}

std::unique_ptr<nic::Endpoint> SharedQueue::make_endpoint(std::uint32_t address) const {
  auto endpoint = std::make_unique<nic::Endpoint>();
  endpoint->port = port_;
  endpoint->queue = outcomes_;
  endpoint->bound = true;
  endpoint->remote_nic_address = address;
  return endpoint;
}

Errc SharedQueue::leave() {
  if (!settle()) return Errc::not_done;
  if (membership_ != nullptr) {
    if (!membership_->may_leave()) {
      if (nic_.clock() != nullptr) nic_.progress();
      return Errc::not_done;
    }
    membership_->withdraw();
  }
  if (channel_) {
    const Errc closed = nic_.channels().close(*channel_);
    if (closed == Errc::not_done) return closed;
    channel_.reset();
  }
  return Errc::ok;
}

SharedQueue::~SharedQueue() {
  const bool is_seen = membership_ == nullptr || membership_->may_leave();
  const std::int64_t deadline = monotonic_ns() + (is_seen ? kLeaveNs : kSeenNs);
  while (leave() == Errc::not_done && monotonic_ns() < deadline) nap();
  if (membership_ != nullptr) membership_->withdraw();
  // A peer that still fills a buffer, or still has a message of ours, keeps what it needs.
  const bool quiet = !channel_ && !flying_;
  if (region_.valid()) (void)nic_.deregister(region_);
  if (source_ != nullptr) source_->queue->references.fetch_sub(1, std::memory_order_relaxed);
  if (!quiet) {
    (void)here_endpoint_.release();
    for (auto& [address, connection] : connections_) (void)connection.endpoint.release();
    return;
  }
  if (arrivals_ != nullptr) (void)nic_.destroy_queue(arrivals_);
  if (outcomes_ != nullptr) (void)nic_.destroy_queue(outcomes_);
  if (port_ != nullptr) nic_.close_port(port_);
  if (memory_ != nullptr) munmap(memory_, bytes_of(attrs_));
}

// ---- connections ----

Errc SharedQueue::describe(std::uint32_t address, gni_msgq_ep_attr_t* attrs, std::uint32_t* bytes) {
  if (address == attachment_.port->nic_address) return Errc::invalid_param;
  const auto known = connections_.find(address);
  if (known != connections_.end() && known->second.expected != 0) return Errc::invalid_state;
  if (known == connections_.end() && connections_.size() >= attrs_.num_msgq_eps) return Errc::no_resource;
  connections_[address].described = true;
  *attrs = {};
  attrs->pe_addr = attachment_.port->nic_address;
  attrs->max_msg_sz = attrs_.max_msg_sz;
  attrs->smsg_q_sz = attrs_.smsg_q_sz;
  attrs->num_insts = static_cast<std::uint32_t>(here_.size());
  for (std::size_t i = 0; i < here_.size(); ++i) {
    attrs->insts[i].id = here_[i].instance;
    attrs->insts[i].mdh = mem_handle::make(here_[i].channel);
  }
  *bytes = static_cast<std::uint32_t>(offsetof(gni_msgq_ep_attr_t, insts) +
                                      here_.size() * sizeof(gni_msgq_rem_inst_t));
  return Errc::ok;
}

Errc SharedQueue::connect(std::uint32_t address, const gni_msgq_ep_attr_t& attrs) {
  (void)collect();
  const auto found = connections_.find(address);
  if (found == connections_.end()) return Errc::no_match;
  Connection& connection = found->second;
  if (connection.expected != 0) return Errc::invalid_state;
  if (!connection.described) return Errc::no_match;
  if (attrs.pe_addr != address || attrs.max_msg_sz != attrs_.max_msg_sz ||
      attrs.smsg_q_sz != attrs_.smsg_q_sz || attrs.num_insts == 0 ||
      attrs.num_insts > GNI_MSGQ_NODE_INSTS_MAX)
    return Errc::invalid_param;
  std::vector<QueueMember> members;
  for (std::uint32_t i = 0; i < attrs.num_insts; ++i) {
    if (!mem_handle::well_formed(attrs.insts[i].mdh) || mem_handle::key_of(attrs.insts[i].mdh).is_number())
      return Errc::invalid_param;
    members.push_back({attrs.insts[i].id, mem_handle::key_of(attrs.insts[i].mdh)});
  }
  ConnectPiece piece;
  piece.address = address;
  piece.expected = attrs.num_insts;
  for (std::uint32_t i = 0; i < attrs.num_insts; ++i) {
    piece.members[piece.count++] = {
        {attrs.insts[i].mdh.qword1, attrs.insts[i].mdh.qword2}, attrs.insts[i].id, 0};
    if (piece.count < piece.members.size() && i + 1 < attrs.num_insts) continue;
    const Errc told = tell_members({.kind = QueuedHeader::kConnect}, as_bytes(piece));
    if (told != Errc::ok) return told;
    piece.count = 0;
    piece.members = {};
  }
  connection.members = std::move(members);
  connection.endpoint = make_endpoint(address);
  connection.expected = attrs.num_insts;
  return Errc::ok;
}

Errc SharedQueue::disconnect(std::uint32_t address) {
  (void)collect();
  const auto found = connections_.find(address);
  if (found == connections_.end()) return Errc::no_match;
  if (!settle()) return Errc::not_done;
  if (found->second.endpoint != nullptr && !found->second.endpoint->is_idle()) return Errc::not_done;
  // The others of the node are told; one that left already needs not know.
  (void)tell_members({.kind = QueuedHeader::kDisconnect}, as_bytes(address));
  connections_.erase(found);
  return Errc::ok;
}

// A message to each other instance of this node.
Errc SharedQueue::tell_members(const QueuedHeader& header, std::span<const std::byte> bytes) {
  for (const QueueMember& member : here_) {
    if (member.instance == attachment_.instance) continue;
    const std::int64_t deadline = nic_.waits().now_ns() + kTellNs;
    Errc told = Errc::not_done;
    while (told == Errc::not_done && nic_.waits().now_ns() < deadline) {
      told = settle() ? launch(*here_endpoint_, member.channel, header, {.header = {}, .data = bytes},
                               nic::CompletionQueue::kNone)
                      : Errc::not_done;
      if (told == Errc::not_done) nap();
    }
    if (told != Errc::ok) return Errc::no_resource;
  }
  return Errc::ok;
}

// ---- receiving ----

// Takes in what has come: news of connections at once, messages for the callback later. Whether there was
// anything.
bool SharedQueue::collect() {
  bool any = false;
  nic::Event event;
  while (nic_.poll(*arrivals_, &event) == Errc::ok) {
    const auto came = nic_.channels().take(event);
    if (!came.ok()) continue;
    any = true;
    auto* const at = static_cast<std::byte*>(came.value().context);
    Arrived arrived{};
    const std::uint64_t bytes = std::min<std::uint64_t>(came.value().bytes, kStride);
    if (bytes >= sizeof arrived.header) {
      std::memcpy(&arrived.header, at, sizeof arrived.header);
      const std::uint64_t left = bytes - sizeof arrived.header;
      if (arrived.header.mark == QueuedHeader::kMark && arrived.header.bytes <= left &&
          arrived.header.bytes <= arrived.bytes.size()) {
        std::memcpy(arrived.bytes.data(), at + sizeof arrived.header, arrived.header.bytes);
        take_in(arrived);
      }
    }
    (void)nic_.channels().post(*channel_, region_, reinterpret_cast<std::uint64_t>(at), kStride, at);
  }
  return any;
}

void SharedQueue::take_in(const Arrived& arrived) {
  if (arrived.header.kind == QueuedHeader::kMessage)
    arrived_.push_back(arrived);
  else if (arrived.header.sender_address == attachment_.port->nic_address)
    learn(arrived);  // only an instance of our node speaks for it
}

void SharedQueue::learn(const Arrived& arrived) {
  if (arrived.header.kind == QueuedHeader::kDisconnect && arrived.header.bytes == sizeof(std::uint32_t)) {
    std::uint32_t address = 0;
    std::memcpy(&address, arrived.bytes.data(), sizeof address);
    const auto found = connections_.find(address);
    if (found == connections_.end()) return;
    // One that still has a message in flight stays: also when its event has come, and the thread that brought
    // it is not done with the endpoint yet.
    const nic::Endpoint* const endpoint = found->second.endpoint.get();
    if (endpoint != nullptr && (!endpoint->is_idle() || (flying_ && flight_.endpoint == endpoint))) return;
    connections_.erase(found);
    return;
  }
  ConnectPiece piece;
  if (arrived.header.kind != QueuedHeader::kConnect || arrived.header.bytes != sizeof piece) return;
  std::memcpy(&piece, arrived.bytes.data(), sizeof piece);
  if (piece.expected == 0 || piece.expected > GNI_MSGQ_NODE_INSTS_MAX || piece.count > piece.members.size() ||
      piece.address == attachment_.port->nic_address)
    return;
  if (!connections_.contains(piece.address) && connections_.size() >= attrs_.num_msgq_eps) return;
  Connection& connection = connections_[piece.address];
  if (connection.members.size() >= piece.expected) return;  // known: from ourselves, or told twice
  if (connection.endpoint == nullptr) connection.endpoint = make_endpoint(piece.address);
  connection.expected = piece.expected;
  for (std::uint32_t i = 0; i < piece.count; ++i) {
    const gni_mem_handle_t handle{piece.members[i].handle[0], piece.members[i].handle[1]};
    connection.members.push_back({piece.members[i].instance, mem_handle::key_of(handle)});
  }
}

bool SharedQueue::wait_for_any(std::uint32_t timeout_ms) {
  // What came before is handed over first. A look that finds nothing would say under a clock that the program
  // waits, and what is not taken in yet holds its senders back.
  if (!arrived_.empty()) {
    (void)settle();
    if (nic_.clock() != nullptr) nic_.clock()->found();
    return true;
  }
  std::int64_t wait = 0;
  if (timeout_ms != 0 && timeout_ms != kDoNotWait) {
    wait = std::int64_t{timeout_ms} * 1'000'000;
    const bool crowded = attachment_.job->wait_budget().spins == 0;
    if (crowded) wait = std::max(wait, kCrowdedWaitNs);
  }
  const std::int64_t deadline = nic_.waits().now_ns() + wait;
  for (std::uint32_t looks = 0;; ++looks) {
    (void)settle();
    (void)collect();
    if (!arrived_.empty()) return true;
    if (looks > 0 && nic_.waits().now_ns() >= deadline) return false;
    // In virtual time the looks alone let none pass up to the deadline.
    if (clock::Clock* const clock = nic_.clock(); looks > 0 && clock != nullptr && clock->is_virtual()) {
      (void)clock->wait(Picos{deadline * 1000});
      continue;
    }
    looks < 100 ? yield_cpu() : nap();
  }
}

Errc SharedQueue::progress(std::uint32_t timeout_ms) {
  const bool blocking = (attrs_.modes & GNI_MSGQ_MODE_BLOCKING) != 0;
  if (in_callback_ || (!blocking && timeout_ms != kDoNotWait && timeout_ms != 0)) return Errc::invalid_param;
  if (!wait_for_any(timeout_ms)) return Errc::ok;
  while (!arrived_.empty()) {
    Arrived next = arrived_.front();
    arrived_.pop_front();
    in_callback_ = true;
    const int more = callback_(next.header.sender_instance, next.header.sender_address, next.bytes.data(),
                               next.header.tag, callback_data_);
    in_callback_ = false;
    if (more == 0) return Errc::not_done;
    if (arrived_.empty()) (void)collect();
  }
  return Errc::ok;
}

}  // namespace orrery::gni
