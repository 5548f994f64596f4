// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/message/destination_queue.hpp"

#include "emu/base/wait.hpp"
#include "lib/gni/domain/mem_handle.hpp"
#include "lib/gni/message/channel_memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include <sys/mman.h>

namespace orrery::gni {

namespace {

constexpr std::uint64_t kDirectoryMark = 0x3171646f7272796f;
constexpr std::uint32_t kMessageMark = 0x6d71646f;
// How long a connection waits for the peer's description, which its service thread gives if nothing else.
constexpr std::int64_t kAnswerNs = 2'000'000'000;
// Messages of one sender that came out of turn: as many as its receiver has buffers.
constexpr std::size_t kMaxEarly = DestinationQueue::kMaxEntries;

}  // namespace

DestinationQueue::DestinationQueue(Attachment& attachment, const gni_dqueue_in_attr_t& attrs)
    : attachment_(attachment),
      nic_(*attachment.nic),
      entries_(attrs.entries == 0 ? GNI_DQUEUE_DEFAULT_ENTRIES : attrs.entries),
      message_bytes_(attrs.msg_size == 0 ? GNI_DQUEUE_DEFAULT_MSG_SIZE : attrs.msg_size),
      most_peers_(attrs.npeers),
      stream_(static_cast<std::uint64_t>(monotonic_ns())),
      callback_(attrs.cb),
      context_(attrs.context) {}

std::uint64_t DestinationQueue::stride() const {
  return (sizeof(Header) + message_bytes_ + nic::kCacheLine - 1) / nic::kCacheLine * nic::kCacheLine;
}

std::uint64_t DestinationQueue::memory_bytes() const { return nic::kPageBytes + entries_ * stride(); }

std::unique_ptr<nic::Endpoint> DestinationQueue::endpoint_to(std::uint32_t address) const {
  auto endpoint = std::make_unique<nic::Endpoint>();
  endpoint->port = port_;
  endpoint->queue = outcomes_;
  endpoint->bound = true;
  endpoint->remote_nic_address = address;
  return endpoint;
}

Result<std::unique_ptr<DestinationQueue>> DestinationQueue::make(Attachment& attachment,
                                                                 const gni_dqueue_in_attr_t& attrs) {
  if (attrs.entries > kMaxEntries || attrs.msg_size > kMaxMessage || attrs.cb == nullptr ||
      attrs.npeers == 0 || attrs.flags != 0)
    return Errc::invalid_param;
  std::unique_ptr<DestinationQueue> queue(new (std::nothrow) DestinationQueue(attachment, attrs));
  if (queue == nullptr) return Errc::no_memory;
  const Errc opened = queue->open();
  if (opened != Errc::ok) return opened;
  return queue;
}

Errc DestinationQueue::open() {
  const nic::Port& ours = *attachment_.port;
  port_ = nic_.open_port(ours.domain, ours.nic_address, ours.instance);
  void* const memory =
      mmap(nullptr, memory_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Errc::no_memory;
  memory_ = static_cast<std::byte*>(memory);
  const auto region = nic_.register_region(*attachment_.port, reinterpret_cast<std::uint64_t>(memory_),
                                           memory_bytes(), 0, nullptr);
  if (!region.ok()) return region.code();
  region_ = region.value();
  const auto arrivals = nic_.create_queue(2 * entries_ + 16, 0);
  if (!arrivals.ok()) return arrivals.code();
  arrivals_ = arrivals.value();
  const auto outcomes = nic_.create_queue(8, 0);
  if (!outcomes.ok()) return outcomes.code();
  outcomes_ = outcomes.value();
  outcomes_->become_source();
  Directory directory;
  for (std::uint32_t entry = 0; entry < entries_; ++entry) {
    if (entry % nic::kMaxReceives == 0) {
      const auto channel = nic_.channels().open(*attachment_.port, arrivals_);
      if (!channel.ok()) return channel.code();
      directory.channels[channels_.size()] = {channel.value().index, channel.value().generation};
      channels_.push_back(channel.value());
    }
    std::byte* const at = memory_ + nic::kPageBytes + entry * stride();
    const Errc posted =
        nic_.channels().post(channels_.back(), region_, reinterpret_cast<std::uint64_t>(at), stride(), at);
    if (posted != Errc::ok) return posted;
  }
  directory.mark = kDirectoryMark;
  directory.count = static_cast<std::uint32_t>(channels_.size());
  directory.stride = static_cast<std::uint32_t>(stride());
  std::memcpy(memory_, &directory, sizeof directory);
  self_ = endpoint_to(attachment_.port->nic_address);
  ask_for_direct(nic_, *self_, region_, memory_);
  return Errc::ok;
}

gni_dqueue_out_attr_t DestinationQueue::describe() const {
  return {.pe = attachment_.port->nic_address,
          .id = attachment_.instance,
          .mdh = mem_handle::make(region_),
          .entries = entries_,
          .msg_size = message_bytes_};
}

Errc DestinationQueue::close() {
  if (flying_ && !landed()) return Errc::not_done;
  while (!channels_.empty()) {
    if (nic_.channels().close(channels_.back()) == Errc::not_done) return Errc::not_done;
    channels_.pop_back();
  }
  return Errc::ok;
}

DestinationQueue::~DestinationQueue() {
  const std::int64_t deadline = monotonic_ns() + kAnswerNs;
  Errc closed = close();
  while (closed == Errc::not_done && monotonic_ns() < deadline) {
    yield_cpu();
    closed = close();
  }
  if (region_.valid()) (void)nic_.deregister(region_);
  if (closed != Errc::ok) {
    // A sender that still fills a buffer, or a peer that reads the last message, keeps what it needs.
    for (auto& [name, peer] : peers_) (void)peer.endpoint.release();
    new std::vector<std::byte>(std::move(staging_));
    return;
  }
  if (arrivals_ != nullptr) (void)nic_.destroy_queue(arrivals_);
  if (outcomes_ != nullptr) (void)nic_.destroy_queue(outcomes_);
  if (port_ != nullptr) nic_.close_port(port_);
  if (memory_ != nullptr) munmap(memory_, memory_bytes());
}

// How what was posted ended, if that is known.
std::optional<Errc> DestinationQueue::landed() {
  nic::Event event;
  if (nic_.poll(*outcomes_, &event) != Errc::ok) return std::nullopt;
  void* context = nullptr;
  (void)outcomes_->collect(event.transaction(), &context);
  flying_ = false;
  return event.status;
}

// Posts a request from staging_ and waits for how it ended; a peer that dies ends it. not_done: the deadline
// came first; nothing else is posted before it has landed.
Errc DestinationQueue::carry(nic::Endpoint& endpoint, nic::Request request,
                             std::optional<std::int64_t> deadline_ns) {
  request.flags = nic::kGlobalEvent | nic::kInOrder;
  request.local_address = reinterpret_cast<std::uint64_t>(staging_.data());
  const Errc posted = nic_.post(endpoint, request);
  if (posted != Errc::ok) return posted;
  flying_ = true;
  std::optional<Errc> ended = landed();
  while (!ended) {
    if (deadline_ns && monotonic_ns() >= *deadline_ns) return Errc::not_done;
    yield_cpu();
    ended = landed();
  }
  // The event comes before its bringer releases the endpoint, which may end with this call.
  while (!endpoint.is_idle()) yield_cpu();
  return *ended;
}

// ---- connecting ----

Result<DestinationQueue::Peer> DestinationQueue::read_directory(const gni_dqueue_out_attr_t& attrs) {
  if (!mem_handle::well_formed(attrs.mdh) || mem_handle::key_of(attrs.mdh).is_number() ||
      attrs.msg_size == 0 || attrs.msg_size > kMaxMessage || attrs.entries == 0 ||
      attrs.entries > kMaxEntries)
    return Errc::invalid_param;
  const nic::MemKey key = mem_handle::key_of(attrs.mdh);
  Peer peer;
  peer.message_bytes = attrs.msg_size;
  peer.endpoint = endpoint_to(attrs.pe);
  staging_.assign(sizeof(Directory), std::byte{0});
  nic::Request request;
  request.op = nic::Op::get;
  request.remote = key;
  request.remote_address = key.page << 12;
  request.length = sizeof(Directory);
  const Errc read = carry(*peer.endpoint, request, monotonic_ns() + kAnswerNs);
  if (read != Errc::ok) {
    if (flying_) (void)peer.endpoint.release();  // the answer may still come
    return read == Errc::unreachable || read == Errc::not_done ? Errc::unreachable : Errc::invalid_param;
  }
  Directory directory;
  std::memcpy(&directory, staging_.data(), sizeof directory);
  if (directory.mark != kDirectoryMark || directory.count == 0 || directory.count > nic::kMaxChannels)
    return Errc::invalid_param;
  for (std::uint32_t i = 0; i < directory.count; ++i) {
    peer.channels.push_back(
        nic::key_of({key.process, directory.channels[i].index, directory.channels[i].generation}));
  }
  return peer;
}

Errc DestinationQueue::connect(std::span<const gni_dqueue_out_attr_t> attrs) {
  if (flying_ && !landed()) return Errc::not_done;
  // More than there is ever room for: before any peer is asked, which may take kAnswerNs each, and before a
  // count that is not one leads beyond the client's list.
  if (attrs.size() > most_peers_) return Errc::no_resource;
  std::map<PeerName, Peer> fresh;
  for (const gni_dqueue_out_attr_t& one : attrs) {
    const PeerName name{one.pe, one.id};
    if (peers_.contains(name) || fresh.contains(name)) return Errc::invalid_param;
    auto peer = read_directory(one);
    if (!peer.ok()) return peer.code();
    fresh.emplace(name, std::move(peer).value());
  }
  if (peers_.size() + fresh.size() > most_peers_) return Errc::no_resource;
  peers_.merge(fresh);
  return Errc::ok;
}

// ---- messages ----

Errc DestinationQueue::put(std::uint32_t address, std::uint32_t instance, std::span<const std::byte> data) {
  const auto found = peers_.find({address, instance});
  if (found == peers_.end()) return Errc::no_match;
  Peer& peer = found->second;
  if (data.size() > peer.message_bytes) return Errc::size;
  if (flying_ && !landed()) return Errc::not_done;
  Header header;
  header.mark = kMessageMark;
  header.bytes = static_cast<std::uint32_t>(data.size());
  header.address = attachment_.port->nic_address;
  header.instance = attachment_.instance;
  header.stream = stream_;
  header.number = peer.sent;
  staging_.resize(sizeof header + data.size());
  std::memcpy(staging_.data(), &header, sizeof header);
  if (!data.empty()) std::memcpy(staging_.data() + sizeof header, data.data(), data.size());
  for (std::size_t tried = 0; tried < peer.channels.size(); ++tried) {
    nic::Request request;
    request.op = nic::Op::send;
    request.remote = peer.channels[peer.next];
    request.length = staging_.size();
    const Errc sent = carry(*peer.endpoint, request, std::nullopt);
    if (sent == Errc::ok) {
      ++peer.sent;
      return Errc::ok;
    }
    if (sent == Errc::invalid_handle) return Errc::no_match;  // the queue was finished
    if (sent != Errc::no_resource) return sent;
    peer.next = (peer.next + 1) % peer.channels.size();
  }
  return Errc::not_done;
}

// Takes in what has come; what is next of its sender is ready.
void DestinationQueue::collect() {
  nic::Event event;
  while (nic_.poll(*arrivals_, &event) == Errc::ok) {
    const auto came = nic_.channels().take(event);
    if (!came.ok()) continue;
    auto* const at = static_cast<std::byte*>(came.value().context);
    Header header;
    const std::uint64_t bytes = std::min(came.value().bytes, stride());
    if (bytes >= sizeof header) std::memcpy(&header, at, sizeof header);
    if (header.mark == kMessageMark && header.bytes <= bytes - sizeof header &&
        header.bytes <= message_bytes_) {
      Inbox& inbox = inboxes_[{{header.address, header.instance}, header.stream}];
      if (header.number >= inbox.next && inbox.early.size() < kMaxEarly)
        inbox.early[header.number].assign(at + sizeof header, at + sizeof header + header.bytes);
      for (auto next = inbox.early.begin(); next != inbox.early.end() && next->first == inbox.next;
           next = inbox.early.erase(next), ++inbox.next)
        ready_.push_back({{header.address, header.instance}, std::move(next->second)});
    }
    const auto entry = static_cast<std::size_t>(at - memory_ - nic::kPageBytes) / stride();
    (void)nic_.channels().post(channels_[entry / nic::kMaxReceives], region_,
                               reinterpret_cast<std::uint64_t>(at), stride(), at);
  }
}

Errc DestinationQueue::progress() {
  if (in_callback_) return Errc::invalid_state;
  collect();
  if (ready_.empty()) return Errc::not_done;
  while (!ready_.empty()) {
    Ready next = std::move(ready_.front());
    ready_.pop_front();
    in_callback_ = true;
    const int more = callback_(context_, next.bytes.data(), static_cast<std::uint32_t>(next.bytes.size()),
                               next.from.first, next.from.second);
    in_callback_ = false;
    if (more == 0) break;
    if (ready_.empty()) collect();
  }
  return Errc::ok;
}

}  // namespace orrery::gni
