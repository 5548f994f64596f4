// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/message/channel.hpp"

#include "emu/nic/events/port.hpp"
#include "emu/nic/initiator/router.hpp"
#include "emu/nic/state/access.hpp"
#include "emu/nic/state/hazard.hpp"

#include <algorithm>
#include <cstring>

namespace orrery::nic {

namespace {

constexpr std::uint64_t kOpen = 1;
// Looks at buffers that others take from under us.
constexpr int kClaimAttempts = 1000;

// An event names the buffer as it was filled.
constexpr std::uint64_t event_data(std::uint32_t channel, std::uint64_t word, std::uint32_t index) {
  return static_cast<std::uint64_t>(channel) << 32 | post_word::serial(word) << 8 | index;
}
static_assert(kMaxReceives <= 256);

// The word of a claimed buffer whose bytes are all there.
constexpr std::uint64_t filled_word(std::uint64_t claimed) {
  return (claimed & ~std::uint64_t{0xf}) | static_cast<std::uint64_t>(PostState::filled);
}

constexpr std::uint64_t make_control(std::uint16_t generation, std::uint16_t domain,
                                     std::uint32_t queue_plus_1) {
  return static_cast<std::uint64_t>(generation) << 48 | static_cast<std::uint64_t>(domain) << 32 |
         static_cast<std::uint64_t>(queue_plus_1) << 16 | kOpen;
}

ChannelState* find_channel(const NicView& nic, std::uint16_t index, std::uint16_t generation,
                           std::uint64_t* control) {
  if (index >= kMaxChannels) return nullptr;
  ChannelState& channel = channels_of(nic).channels[index];
  // Acquire: pairs with the owner that opened it.
  *control = channel.control.load(std::memory_order_acquire);
  const bool open = (*control & kOpen) != 0 && *control >> 48 == generation;
  return open ? &channel : nullptr;
}

// The oldest buffer that is ready, and its word.
std::optional<std::uint32_t> next_ready(ChannelState& channel, std::uint64_t* word) {
  std::optional<std::uint32_t> best;
  std::uint64_t best_order = UINT64_MAX;
  for (std::uint32_t i = 0; i < kMaxReceives; ++i) {
    ReceiveBuffer& buffer = channel.buffers[i];
    const std::uint64_t seen = buffer.word.load(std::memory_order_acquire);
    if (post_word::state(seen) != PostState::pending) continue;
    const std::uint64_t order = buffer.order.load(std::memory_order_relaxed);
    if (best && order >= best_order) continue;
    best = i;
    best_order = order;
    *word = seen;
  }
  return best;
}

// The buffer that earlier packets of the same send are in.
std::optional<std::uint32_t> being_filled(ChannelState& channel, const wire::PacketHeader& header) {
  for (std::uint32_t i = 0; i < kMaxReceives; ++i) {
    ReceiveBuffer& buffer = channel.buffers[i];
    if (post_word::state(buffer.word.load(std::memory_order_acquire)) == PostState::claimed &&
        buffer.source.load(std::memory_order_relaxed) == header.source &&
        buffer.transaction.load(std::memory_order_relaxed) == header.transaction)
      return i;
  }
  return std::nullopt;
}

// One packet's bytes into a claimed buffer.
struct Filling {
  const Target& target;
  const wire::PacketHeader& header;
  std::span<const std::byte> payload;
  std::uint64_t address;
  std::uint32_t region;
  bool only_mapped;
  bool same_space;

  Errc run() const {
    MrtEntry& entry = target.nic.region(region & 0xffff);
    const std::uint64_t word = entry.control.load(std::memory_order_acquire);
    const Errc access = check_access(entry, word, static_cast<std::uint16_t>(region >> 16), header.domain,
                                     address, header.length, true);
    if (access != Errc::ok) return access;
    if (only_mapped &&
        (target.memory == nullptr || (control::state(word) != RegionState::direct && !same_space)))
      return Errc::not_done;
    std::uint64_t at = address + header.offset;
    std::span<const std::byte> left = payload;
    while (!left.empty()) {
      const Run run = target.memory->find(at);
      if (!run.holds(at, 1)) return only_mapped ? Errc::not_done : Errc::bounds;
      const auto piece = std::min<std::uint64_t>(left.size(), run.end - at);
      std::memcpy(run.at(at), left.data(), piece);
      left = left.subspan(piece);
      at += piece;
    }
    return Errc::ok;
  }
};

Errc fill(const Filling& filling, const SendContext& context) {
  if (context.with_region == nullptr) return filling.run();
  return context.with_region(
      context.self, filling.region & 0xffff,
      [](void* argument) { return static_cast<const Filling*>(argument)->run(); },
      const_cast<Filling*>(&filling));
}

}  // namespace

Result<std::uint32_t> credits_of(const NicView& nic, const ChannelName& name) {
  std::uint64_t control = 0;
  ChannelState* const channel = find_channel(nic, name.index, name.generation, &control);
  if (channel == nullptr) return Errc::invalid_handle;
  std::uint32_t ready = 0;
  for (const ReceiveBuffer& buffer : channel->buffers) {
    ready += post_word::state(buffer.word.load(std::memory_order_relaxed)) == PostState::pending ? 1 : 0;
  }
  return ready;
}

bool take_back_buffers(const NicView& nic, std::uint16_t channel,
                       const std::function<bool(ProcessName)>& alive) {
  if (channel >= kMaxChannels) return false;
  bool any = false;
  for (ReceiveBuffer& buffer : channels_of(nic).channels[channel].buffers) {
    std::uint64_t word = buffer.word.load(std::memory_order_acquire);
    if (post_word::state(word) != PostState::claimed || post_word::claimer_slot(word) >= kMaxProcesses)
      continue;
    if (alive({post_word::claimer_slot(word), post_word::claimer_generation(word)})) continue;
    any |= buffer.word.compare_exchange_strong(word, post_word::with(word, PostState::pending),
                                               std::memory_order_seq_cst);
  }
  return any;
}

Errc execute_send(const Target& target, const wire::PacketHeader& header, std::span<const std::byte> payload,
                  const SendContext& context) {
  std::uint64_t control = 0;
  ChannelState* const channel = find_channel(target.nic, header.key_index, header.key_generation, &control);
  if (channel == nullptr) return Errc::invalid_handle;
  if ((control >> 32 & 0xffff) != header.domain) return Errc::permission;
  if (header.offset > header.length || payload.size() > header.length - header.offset) return Errc::bounds;

  std::uint64_t claimed = 0;
  std::optional<std::uint32_t> index;
  if (header.offset != 0) {
    index = being_filled(*channel, header);
    if (!index) return Errc::no_match;
    claimed = channel->buffers[*index].word.load(std::memory_order_relaxed);
  } else {
    for (int patience = kClaimAttempts; patience > 0 && claimed == 0; --patience) {
      std::uint64_t word = 0;
      index = next_ready(*channel, &word);
      if (!index) return Errc::no_resource;
      ReceiveBuffer& buffer = channel->buffers[*index];
      const std::uint64_t wanted = post_word::claimed(word, context.claimer, context.generation);
      if (buffer.word.compare_exchange_strong(word, wanted, std::memory_order_seq_cst)) claimed = wanted;
    }
    if (claimed == 0) return Errc::no_resource;
  }
  ReceiveBuffer& buffer = channel->buffers[*index];
  buffer.source.store(header.source, std::memory_order_relaxed);
  buffer.transaction.store(header.transaction, std::memory_order_relaxed);
  const Filling filling{target,
                        header,
                        payload,
                        buffer.address.load(std::memory_order_relaxed),
                        buffer.region.load(std::memory_order_relaxed),
                        context.only_mapped,
                        context.same_space};
  Errc done =
      header.length > buffer.length.load(std::memory_order_relaxed) ? Errc::size : fill(filling, context);
  if (done == Errc::ok && (header.flags & wire::kLast) == 0) return done;
  std::uint64_t expected = claimed;
  if (done != Errc::ok) {
    // As if no sender had come: what was written into it means nothing.
    buffer.word.compare_exchange_strong(expected, post_word::with(claimed, PostState::pending),
                                        std::memory_order_seq_cst);
    return done;
  }
  buffer.bytes.store(header.length, std::memory_order_relaxed);
  buffer.remote_event_data.store(static_cast<std::uint32_t>(header.event_data), std::memory_order_relaxed);
  // Release: an owner that sees the end sees the bytes.
  if (!buffer.word.compare_exchange_strong(expected, filled_word(claimed), std::memory_order_seq_cst))
    return Errc::terminated;  // taken for dead, and the buffer given back
  const auto queue_plus_1 = static_cast<std::uint32_t>(control >> 16 & 0xffff);
  if (const auto queue = open_queue(target.nic, queue_plus_1 - 1)) {
    (void)push_event(*queue, {EventKind::received, Errc::ok, event_data(header.key_index, claimed, *index)});
  }
  expected = filled_word(claimed);
  buffer.word.compare_exchange_strong(expected, post_word::with(claimed, PostState::completed),
                                      std::memory_order_seq_cst);
  return Errc::ok;
}

// ---- the initiator ----

// The send is applied from here when its buffer is mapped here. not_done: it has to go by frame.
Errc Router::send_direct(const Request& request, std::uint32_t hazard_slot) {
  Peer& peer = *request.peer;
  struct Access {
    Lock<LockRank::shared_hazard>& mu;
    Peer& peer;
    std::uint32_t hazard_slot;
  } access{shared_hazard_mu_, peer, hazard_slot};
  const auto with_region = [](void* self, std::uint32_t region, Errc (*body)(void*), void* argument) {
    auto& a = *static_cast<Access*>(self);
    if (region >= kMaxRegions) return Errc::invalid_handle;
    std::unique_lock shared(a.mu, std::defer_lock);
    if (a.hazard_slot == kSharedHazardSlot) shared.lock();
    const HazardGuard guard(a.peer.hazard(a.hazard_slot), region, a.peer.link.strong_hazards);
    (void)announced_word(a.peer.link.nic.region(region));
    return body(argument);
  };
  const ProcessName self = services_.self();
  const SendContext context{.claimer = self.slot,
                            .generation = self.generation,
                            .with_region = with_region,
                            .self = &access,
                            .only_mapped = true,
                            .same_space = peer.link.same_address_space};
  wire::PacketHeader header = header_of(request, self_);
  header.flags |= wire::kLast;
  const Target target{peer.link.nic, peer.link.same_address_space ? &identity_ : peer.link.memory.get()};
  const std::span payload(reinterpret_cast<const std::byte*>(request.local_address), request.length);
  const Errc done = execute_send(target, header, payload, context);
  if (done != Errc::no_resource) return done;
  // The dead may hold buffers that would do.
  const auto is_alive = [this](ProcessName process) { return services_.alive(process); };
  return take_back_buffers(peer.link.nic, request.remote.index, is_alive)
             ? execute_send(target, header, payload, context)
             : done;
}

// ---- the owner ----

ChannelState* ChannelUnit::find(const ChannelName& name) const {
  std::uint64_t control = 0;
  return find_channel(view_, name.index, name.generation, &control);
}

Result<ChannelName> ChannelUnit::open(const Port& port, CompletionQueue* queue) {
  if (queue == nullptr) return Errc::invalid_param;
  const std::lock_guard lock(mu_);
  for (std::uint16_t i = 0; i < kMaxChannels; ++i) {
    Own& own = own_[i];
    if (own.open) continue;
    own.generation =
        own.generation == UINT16_MAX ? std::uint16_t{1} : static_cast<std::uint16_t>(own.generation + 1);
    own.open = true;
    own.queue = queue;
    queue->references.fetch_add(1, std::memory_order_relaxed);
    queue->become_destination();
    channels_of(view_).channels[i].control.store(
        make_control(own.generation, port.domain, queue->index() + 1), std::memory_order_release);
    return ChannelName{static_cast<std::uint16_t>(view_.header().process_slot), i, own.generation};
  }
  return Errc::no_resource;
}

Errc ChannelUnit::close(const ChannelName& name) {
  const std::lock_guard lock(mu_);
  if (name.index >= kMaxChannels || !own_[name.index].open || own_[name.index].generation != name.generation)
    return Errc::invalid_handle;
  ChannelState& channel = channels_of(view_).channels[name.index];
  // No new sender from here on; one that found it open before may still claim a buffer, so look at all.
  channel.control.store(0, std::memory_order_seq_cst);
  bool busy = false;
  for (ReceiveBuffer& buffer : channel.buffers) {
    std::uint64_t word = buffer.word.load(std::memory_order_acquire);
    while (post_word::state(word) != PostState::free && post_word::state(word) != PostState::claimed &&
           !buffer.word.compare_exchange_weak(word, post_word::with(word, PostState::free))) {
    }
    busy = busy || post_word::state(word) == PostState::claimed;
  }
  if (busy) return Errc::not_done;
  own_[name.index].queue->references.fetch_sub(1, std::memory_order_relaxed);
  own_[name.index].queue = nullptr;
  own_[name.index].open = false;
  return Errc::ok;
}

Errc ChannelUnit::post(const ChannelName& name, const MemKey& key, std::uint64_t address,
                       std::uint64_t length, void* context) {
  ChannelState* const channel = find(name);
  if (channel == nullptr || !key.valid() || key.index >= kMaxRegions) return Errc::invalid_handle;
  const std::lock_guard lock(mu_);
  for (std::uint32_t i = 0; i < kMaxReceives; ++i) {
    ReceiveBuffer& buffer = channel->buffers[i];
    const std::uint64_t word = buffer.word.load(std::memory_order_relaxed);
    if (post_word::state(word) != PostState::free) continue;
    const std::uint64_t serial = post_word::serial(word) + 1;
    buffer.order.store(next_order_++, std::memory_order_relaxed);
    buffer.address.store(address, std::memory_order_relaxed);
    buffer.length.store(length, std::memory_order_relaxed);
    buffer.region.store(static_cast<std::uint32_t>(key.generation) << 16 | key.index,
                        std::memory_order_relaxed);
    buffer.bytes.store(0, std::memory_order_relaxed);
    own_[name.index].contexts[i] = context;
    // Release: a sender that claims it sees what it is.
    buffer.word.store(post_word::make(serial, PostState::pending), std::memory_order_release);
    return Errc::ok;
  }
  return Errc::no_resource;
}

Result<ReceivedSend> ChannelUnit::take(const Event& event) {
  const auto channel = static_cast<std::uint32_t>(event.data >> 32);
  const auto index = static_cast<std::uint32_t>(event.data & 0xff);
  if (event.kind != EventKind::received || channel >= kMaxChannels || index >= kMaxReceives)
    return Errc::no_match;
  ReceiveBuffer& buffer = channels_of(view_).channels[channel].buffers[index];
  std::uint64_t word = buffer.word.load(std::memory_order_acquire);
  const PostState state = post_word::state(word);
  if ((state != PostState::completed && state != PostState::filled) ||
      event_data(channel, word, index) != event.data)
    return Errc::no_match;
  const std::lock_guard lock(mu_);
  const ReceivedSend came{own_[channel].contexts[index], buffer.bytes.load(std::memory_order_relaxed),
                          static_cast<wire::ProcessSlot>(buffer.source.load(std::memory_order_relaxed)),
                          buffer.remote_event_data.load(std::memory_order_relaxed)};
  // Its sender may just be taking its name out of the word.
  while (!buffer.word.compare_exchange_weak(word, post_word::with(word, PostState::free),
                                            std::memory_order_seq_cst)) {
  }
  return came;
}

void ChannelUnit::take_back_from_the_dead() {
  const std::lock_guard lock(mu_);
  for (std::uint16_t i = 0; i < kMaxChannels; ++i) {
    if (!own_[i].open) continue;
    (void)take_back_buffers(view_, i, [this](ProcessName process) { return services_.alive(process); });
    for (std::uint32_t k = 0; k < kMaxReceives; ++k) {
      ReceiveBuffer& buffer = channels_of(view_).channels[i].buffers[k];
      std::uint64_t filled = buffer.word.load(std::memory_order_acquire);
      if (post_word::state(filled) == PostState::filled && post_word::claimer_slot(filled) < kMaxProcesses &&
          !services_.alive({post_word::claimer_slot(filled), post_word::claimer_generation(filled)}) &&
          buffer.word.compare_exchange_strong(filled, post_word::with(filled, PostState::completed)))
        (void)push_event(own_[i].queue->view(), {EventKind::received, Errc::ok, event_data(i, filled, k)});
      // One that comes in packets is claimed by us, for a source that may send no more.
      std::uint64_t word = buffer.word.load(std::memory_order_acquire);
      const auto source = static_cast<wire::ProcessSlot>(buffer.source.load(std::memory_order_relaxed));
      if (post_word::state(word) == PostState::claimed &&
          post_word::claimer_slot(word) == post_word::kOwner && !services_.slot_alive(source)) {
        buffer.word.compare_exchange_strong(word, post_word::with(word, PostState::pending),
                                            std::memory_order_seq_cst);
      }
    }
  }
}

}  // namespace orrery::nic
