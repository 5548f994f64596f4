// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/context.hpp"

#include "emu/base/wait.hpp"

#include <algorithm>
#include <array>

namespace orrery::dmapp {

constinit thread_local Seat t_seat [[gnu::tls_model("initial-exec")]];
std::array<Visits, kMaxContexts> g_visits;
std::atomic<bool> g_strong_visits{false};

namespace {

// Gives the context back at the thread's end.
struct Leaving {
  ~Leaving() { leave_seat(); }
};

//   63..62 10 | 61..52 context | 51..32 place | 31..0 generation
constexpr std::uint64_t kNamed = std::uint64_t{2} << 62;
constexpr std::uint32_t named_place_of(std::uint64_t handle) {
  return static_cast<std::uint32_t>(handle >> 32) & 0xf'ffff;
}

}  // namespace

Context* take_seat() {
  Seat seat;
  seat.context = World::enter_current(&seat.epoch);
  if (seat.context != nullptr) {
    seat.visits = &g_visits[seat.context->number()];
    thread_local Leaving leaving;
    (void)leaving;
  }
  t_seat = seat;
  return t_seat.context;
}

void leave_seat() {
  if (t_seat.context != nullptr) World::leave_current(*t_seat.context, t_seat.epoch);
  t_seat = {.context = nullptr, .epoch = UINT64_MAX};
}

Status Context::open() {
  nic_ = &world_.nic();
  pe_ = world_.pe();
  npes_ = world_.npes();
  attributes = world_.attributes();
  targets_.resize(static_cast<std::size_t>(npes_));
  if (const Status opened = completions_.open(*nic_, attributes.max_outstanding_nb); !opened.ok())
    return opened;
  port_ = number_ == 0
              ? world_.signed_on().port
              : nic_->open_port(world_.signed_on().port->domain, world_.signed_on().port->nic_address,
                                world_.signed_on().port->instance);
  use_attributes();
  return {};
}

Context::~Context() {
  targets_.clear();
  completions_.close();
  if (port_ != nullptr && number_ != 0) nic_->close_port(port_);
}

void Context::use_attributes() {
  puts_in_order_ = attributes.put_relaxed_ordering == DMAPP_ROUTING_IN_ORDER;
  gets_in_order_ = attributes.get_relaxed_ordering == DMAPP_ROUTING_IN_ORDER;
  put_delivery_ = delivery_of(attributes.put_relaxed_ordering);
  get_delivery_ = delivery_of(attributes.get_relaxed_ordering);
  engine_bytes_ = std::max<std::uint64_t>(attributes.offload_threshold, nic_->options().bte_crossover);
}

Target* Context::reach(int pe) {
  auto target = std::make_unique<Target>();
  const Card& card = world_.card(pe);
  nic::Endpoint& endpoint = target->endpoint;
  endpoint.port = port_;
  endpoint.queue = completions_.queue();
  endpoint.bound = true;
  endpoint.remote_nic_address = card.nic_address;
  endpoint.remote_event_data = static_cast<std::uint32_t>(pe_);
  for (std::size_t kind = 1; kind < kSymmetricKinds; ++kind) {
    target->key[kind] = nic::key_word(card.regions[kind].key);
    target->base[kind] = card.regions[kind].base;
    target->bytes[kind] = card.regions[kind].bytes;
  }
  targets_[static_cast<std::size_t>(pe)] = std::move(target);
  return targets_[static_cast<std::size_t>(pe)].get();
}

Place Context::find_in(SegKind kind, int pe, std::uint64_t offset) {
  Target* target = targets_[static_cast<std::size_t>(pe)].get();
  if (target == nullptr) target = reach(pe);
  const auto index = static_cast<std::size_t>(kind);
  return {.target = target, .key = target->key[index], .address = target->base[index] + offset};
}

nic::Request Context::put_request(const Place& place, const void* local, std::uint64_t bytes) {
  nic::Request request;
  request.op = nic::Op::put;
  request.flags = nic::kGlobalEvent;
  request.local_address = reinterpret_cast<std::uint64_t>(local);
  request.remote_address = place.address;
  request.length = bytes;
  request.remote = seg::key_of(place.key);
  return request;
}

nic::Request Context::get_request(const Place& place, void* local, std::uint64_t bytes) {
  nic::Request request = put_request(place, local, bytes);
  request.op = nic::Op::get;
  request.flags = nic::kLocalEvent;
  return request;
}

nic::Request Context::amo_request(const Place& place, std::uint8_t command, void* result, std::uint64_t a,
                                  std::uint64_t b) {
  nic::Request request = put_request(place, result, nic::amo::width(command));
  request.op = nic::Op::amo;
  request.flags = nic::amo::fetches(command) ? nic::kLocalEvent : nic::kGlobalEvent;
  request.command = command;
  request.operand[0] = a;
  request.operand[1] = b;
  return request;
}

// Takes in what ended; a look in vain is the last. It may last, in virtual time, as a wait does.
void Context::reap(std::unique_lock<ShortLock>& lock) {
  clock::Clock* const clock = nic_->clock();
  if (clock == nullptr || !clock->is_virtual()) return completions_.reap();
  (void)completions_.reap_told();
  while (!makes_no_vain_look) {
    lock.unlock();
    const bool looked = nic_->attendant().progress(completions_.queue());
    lock.lock();
    if (!looked || !completions_.reap_told()) return;
    clock->found();
  }
}

// Waits until an operation has ended, in virtual time without the lock: a thread that wants it would wait in
// real time, of which the clock knows nothing, and may be the one that makes time pass. So another one may
// take in what ended.
void Context::await_end(std::unique_lock<ShortLock>& lock) {
  nic::CompletionQueue& queue = *completions_.queue();
  clock::Clock* const clock = nic_->clock();
  if (clock == nullptr || !clock->is_virtual())
    return static_cast<void>(nic_->waits().wait(queue, std::nullopt));
  const std::uint64_t before = completions_.taken_in();
  lock.unlock();
  for (;;) {
    nic_->attendant().move_in_turn();
    if (queue.test() != Errc::not_done || completions_.taken_in() != before) break;
    (void)clock->wait(std::nullopt);
  }
  lock.lock();
}

Errc Context::start(const Place& place, nic::Request request, Tracker& tracker) {
  const bool is_get = request.op == nic::Op::get;
  request.delivery_mode = is_get ? get_delivery_ : put_delivery_;
  if (is_get ? gets_in_order_ : puts_in_order_) request.flags |= nic::kInOrder;
  // Without a clock the engine is for what would keep the caller long.
  const std::uint64_t engine_from = nic_->clock() != nullptr ? attributes.offload_threshold : engine_bytes_;
  if ((request.op == nic::Op::put || is_get) && (request.flags & nic::kSyncFlag) == 0 &&
      request.length >= std::max<std::uint64_t>(engine_from, 1) && request.length < (1u << 24))
    request.flags |= nic::kBlockTransfer;
  const Visit visit;
  if (visit.context() == nullptr) return Errc::invalid_state;
  std::unique_lock lock(mu_);
  for (;;) {
    const Errc accepted = completions_.start(place.target->endpoint, request, tracker);
    if (accepted != Errc::no_resource) return accepted;
    reap(lock);
    if (!completions_.is_empty()) await_end(lock);
  }
}

Errc Context::wait(Tracker& tracker) {
  const Visit visit;
  if (visit.context() == nullptr) return Errc::invalid_state;
  std::unique_lock lock(mu_);
  for (;;) {
    reap(lock);
    const Errc ended = Completions::end_of(tracker);
    if (ended != Errc::not_done) return ended;
    await_end(lock);
  }
}

void Context::drain() {
  std::unique_lock lock(mu_);
  for (;;) {
    reap(lock);
    if (completions_.is_empty()) break;
    await_end(lock);
  }
  for (const auto& target : targets_) {
    // Acquire: an event comes before its bringer counts itself out of the endpoint.
    while (target != nullptr && target->endpoint.in_flight.load(std::memory_order_acquire) != 0) {
      nic_->progress();
      yield_cpu();
    }
  }
}

Errc Context::test(Tracker& tracker) {
  std::unique_lock lock(mu_);
  reap(lock);
  return Completions::end_of(tracker);
}

bool Context::is_under_way() {
  std::unique_lock lock(mu_);
  reap(lock);
  return implicit_.left.load(std::memory_order_relaxed) != 0;
}

Errc Context::take() {
  const std::lock_guard lock(mu_);
  return Completions::take(implicit_);
}

void Context::progress() {
  std::unique_lock lock(mu_);
  reap(lock);
}

Tracker& Context::open_named(std::uint64_t* handle) {
  const std::lock_guard lock(mu_);
  std::uint32_t place = 0;
  if (free_.empty()) {
    place = static_cast<std::uint32_t>(named_.size());
    named_.emplace_back();
  } else {
    place = free_.back();
    free_.pop_back();
  }
  Named& named = named_[place];
  named.used = true;
  ++named.generation;
  *handle = kNamed | std::uint64_t{number_} << 52 | std::uint64_t{place} << 32 | named.generation;
  return named.tracker;
}

Tracker* Context::find_named(std::uint64_t handle) {
  const std::lock_guard lock(mu_);
  const std::uint32_t place = named_place_of(handle);
  if (handle >> 62 != kNamed >> 62 || place >= named_.size()) return nullptr;
  Named& named = named_[place];
  return named.used && named.generation == static_cast<std::uint32_t>(handle) ? &named.tracker : nullptr;
}

void Context::close_named(std::uint64_t handle) {
  const std::lock_guard lock(mu_);
  const std::uint32_t place = named_place_of(handle);
  named_[place].used = false;
  free_.push_back(place);
}

}  // namespace orrery::dmapp
