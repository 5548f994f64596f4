// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The composition root's share in the wire between hosts: it opens it, puts the service thread to sleep on
// it, and knows which process is reached by it.
#include "emu/base/config.hpp"
#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/memory/fault_handler.hpp"
#include "emu/nic/host/runtime.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace orrery::nic {

namespace {

// How long a first post waits until its peer has said where it is reached.
constexpr std::int64_t kPublishNs = 10'000'000'000;
// How long a process that ends waits until others have what it sent them.
constexpr std::int64_t kDrainNs = 2'000'000'000;

// How much later than its retransmission is due a frame may be looked after.
constexpr std::int64_t kLateNs = 100'000'000;
// When a frame that the provider had no room for, or no connection, is tried again.
constexpr std::int64_t kSoonNs = 1'000'000;
// How often the service thread does its share while the program polls the wire.
constexpr std::int64_t kServedAtLeastNs = 20'000'000;
// How often the service thread looks at the wire in a row, as long as something comes, before others' turn.
constexpr int kWirePollsPerWake = 64;

void nap(std::int64_t ns) {
  const timespec pause{0, ns};
  nanosleep(&pause, nullptr);
}

// A NIC without registrations and without processes.
Result<NicView> make_empty_nic() {
  const Geometry geometry{.lane_count = 1, .arena_bytes = 4096};
  void* const base = mmap(nullptr, geometry.segment_bytes(), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return Errc::no_memory;
  return NicView::create(base, geometry, 0, 0, false);
}

}  // namespace

std::vector<std::byte> Runtime::Addresses::address_of(std::uint32_t rank) {
  auto address = directory.wire_address(rank);
  return address.ok() ? std::move(address).value().bytes : std::vector<std::byte>{};
}

Status Runtime::open_wire() {
  const std::lock_guard lock(wire_mu_);
  if (clock_ != nullptr) {
    // A clock's operations are done through the target's segment (timed.cpp).
    if (wire_for_all_)
      log::error("ORRERY_WIRE=ofi cannot be used with a clock: unset it or take --clock raw");
    else
      log::error("no wire to other processes under a clock: all of the job's must share this host");
    return Errc::unsupported;
  }
  if (wire_ == nullptr) return start_wire();
  // One that failed half way stays so: the log has said why.
  return wire_is_open_.load(std::memory_order_relaxed) ? Status{} : Status{Errc::system};
}

// REQUIRES: wire_mu_ is held.
Status Runtime::start_wire() {
  job::HostDirectory& directory = job_.directory();
  if (!directory.wire_job()) {
    // No agreement with other hosts: the job is this host's. Its number is no secret, each frame says it; the
    // directory has drawn a secret for it.
    directory.set_wire_job({.job = directory.job_id()});
  }
  const job::WireJob job = *directory.wire_job();
  wire::OfiWireOptions options;
  options.provider = config::text("ORRERY_PROVIDER");
  options.interface = config::text("ORRERY_INTERFACE");
  options.other_hosts = job.hosts > 1;
  options.job = job.job;
  options.secret = {job.secret[0], job.secret[1]};
  options.rank = static_cast<std::uint32_t>(job_.self().index);
  options.unreachable_after_ns = static_cast<std::int64_t>(config::number("ORRERY_WIRE_TIMEOUT")) * 1'000'000;
  options.encrypt = config::text("ORRERY_ENCRYPT") == "on";
  const std::string faults = config::text("ORRERY_WIRE_FAULTS");
  if (!faults.empty()) {
    const auto rates = wire::FaultRates::parse(faults);
    if (!rates.ok()) {
      log::error("ORRERY_WIRE_FAULTS={} is not accepted: expected {}", faults, wire::FaultRates::kAccepted);
      return Errc::invalid_param;
    }
    options.faults = rates.value();
  }
  std::string why;
  hold_standard_descriptors();
  auto wire =
      wire::OfiWire::open(options, nic_->transport().wire_sink(), &nic_->transport().wire_loss(), &why);
  if (!wire.ok()) {
    log::error("no wire to other hosts: {} (ORRERY_PROVIDER, ORRERY_INTERFACE)", why);
    return wire.code();
  }
  if (options.other_hosts && wire.value()->on_loopback()) {
    log::warn("the wire leaves by the loopback (ORRERY_INTERFACE={}), which no other host is reached from",
              options.interface);
  }
  const auto empty = make_empty_nic();
  if (!empty.ok()) return empty.code();
  empty_nic_ = empty.value();
  wire_ = std::move(wire).value();
  wire_->set_addresses(&addresses_);

  wire_timer_ = UniqueFd(own_descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)));
  if (wire_timer_.get() < 0) {
    log::error("no timer for the wire to other hosts: {}", std::strerror(errno));
    return Errc::system;
  }
  // Not looked at any more when this ends in an error: no thread would remove them.
  const auto give_up = [this](Status why_not) {
    if (wire_->wait_fd() >= 0) job_.loop().remove(wire_->wait_fd());
    job_.loop().remove(wire_timer_.get());
    return why_not;
  };
  Status watched = job_.loop().add(wire_timer_.get(), EPOLLIN, [this](std::uint32_t) { on_wire_timer(); });
  // Not watched before the service thread sleeps: see rest_wire().
  if (watched.ok() && wire_->wait_fd() >= 0)
    watched = job_.loop().add(wire_->wait_fd(), 0, [this](std::uint32_t) { on_wire(); });
  if (!watched.ok()) return give_up(watched);
  nic_->transport().use_wire(*wire_);
  const Status published = directory.publish_wire_address(job_.self(), wire_->address());
  if (!published.ok()) {
    log::error("provider {}: its addresses are too long: {} bytes", wire_->provider(),
               wire_->address().size());
    return give_up(published);
  }
  log::debug("wire to {} opened by provider {}", wire_for_all_ ? "all other processes" : "other hosts",
             wire_->provider());
  wire_is_open_.store(true, std::memory_order_release);
  ring_self();  // the service thread goes to sleep on it
  return {};
}

void Runtime::stop_wire() {
  if (!wire_is_open_.load(std::memory_order_acquire)) return;
  // What was sent last may still be under way, and goes with us.
  const std::int64_t limit = monotonic_ns() + kDrainNs;
  while (!nic_->transport().wire_is_drained() && monotonic_ns() < limit) nap(50'000);
  if (wire_->wait_fd() >= 0) job_.loop().remove(wire_->wait_fd());
  job_.loop().remove(wire_timer_.get());
}

// ---- service thread ----

// Returns whether there is more to do soon.
bool Runtime::serve() {
  memory::call_for_fault_handler_look();
  const bool polls = program_polls();
  bool more = nic_->serve();
  if (wire_is_open_.load(std::memory_order_acquire)) more = !rest_wire(polls) || more;
  served_ns_.store(monotonic_ns(), std::memory_order_relaxed);
  if (!more) memory::look_for_fault_handler_each_time();
  return more;
}

// The tick is there to notice that no thread polls any more. Each takes the core from the polling thread for
// some 20 us: so that thread moves it as long as it polls.
void Runtime::postpone_service(std::int64_t ns) {
  memory::renew_fault_handler_look();
  const std::int64_t served = served_ns_.load(std::memory_order_relaxed);
  if (monotonic_ns() - served < kServedAtLeastNs) job_.loop().postpone_tick(std::chrono::nanoseconds(ns));
}

// Lets the wire wake us, unless the program polls it itself. False: it must be looked at again soon.
bool Runtime::rest_wire(bool polls) {
  if (wire_->wait_fd() < 0) return false;
  if (polls) {
    // Not at all: the kernel would look for sleepers at every message, on the sender's way.
    wire_watch_.stop();
    return false;
  }
  // Before the last look: what comes after it is an edge.
  if (!wire_watch_.start()) return false;
  if (!nic_->transport().may_sleep_on_wire(wire_wakes_at_)) return false;
  const std::int64_t at = wire_wakes_at_.load(std::memory_order_relaxed);
  return at == INT64_MAX || wire_watch_.set_timer(at);
}

bool Runtime::WireSystem::watch(bool on) {
  // Edges only: some providers leave their descriptor readable for good once something has come.
  return runtime.job_.loop().change(runtime.wire_->wait_fd(), on ? EPOLLIN | EPOLLET : 0).ok();
}

bool Runtime::WireSystem::set_timer(std::int64_t at_ns) {
  itimerspec when{};
  when.it_value = {at_ns / 1'000'000'000, at_ns % 1'000'000'000};
  return timerfd_settime(runtime.wire_timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr) == 0;
}

// A thread of the program is about to sleep. Where one of them had taken the watch off, the service thread
// puts it back; where it looks by its tick, it wakes by itself.
void Runtime::hand_wire_back() {
  if (!wire_watch_.hand_back()) return;
  handed_back_.store(true, std::memory_order_relaxed);
  ring_self();
}

// Whether the program has polled since we last asked, and goes on. REQUIRES: service thread.
bool Runtime::program_polls() {
  const bool handed_back = handed_back_.exchange(false, std::memory_order_relaxed);
  return nic_->attendant().program_polls() && !handed_back;
}

// Something came while this thread slept.
void Runtime::on_wire() {
  const bool polls = program_polls();
  bool soon = false;
  for (int i = 0; i < kWirePollsPerWake; ++i) {
    soon = nic_->attendant().serve_wire() || soon;
    if (!rest_wire(polls)) {
      if (polls) break;
      continue;
    }
    if (soon) break;
    return;
  }
  tick();
}

void Runtime::on_wire_timer() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = read(wire_timer_.get(), &count, sizeof count);
  wire_wakes_at_.store(INT64_MAX, std::memory_order_relaxed);
  wire_watch_.timer_fired(nic_->attendant().polls());
  on_wire();
}

void Runtime::attend_wire(bool soon) {
  // A frame that is lost is retransmitted: only a thread that looks by then notices. The service thread is
  // not woken for it, and the timer stays although the frame may be acknowledged soon: so it is set a few
  // times a second.
  const std::int64_t at = monotonic_ns() + (soon ? kSoonNs : kLateNs);
  if (wire_wakes_at_.load(std::memory_order_relaxed) <= at) return;
  wire_wakes_at_.store(at, std::memory_order_relaxed);
  (void)wire_watch_.set_timer(at);
}

void Runtime::wire_lost(wire::ProcessSlot slot) {
  const auto process = process_in(slot);
  if (!process.ok()) return;
  lost_[slot].store(std::uint64_t{process.value().generation} + 1, std::memory_order_release);
  job_.loop().run_soon([this, name = process.value()] { nic_->attendant().peer_died(name); });
}

// ---- peers ----

Status Runtime::watch_death(ProcessName process) {
  const job::ProcessRef reference{.index = process.slot, .generation = process.generation};
  return job_.peers().add(reference, [this](job::ProcessRef dead) {
    nic_->attendant().peer_died({static_cast<wire::ProcessSlot>(dead.index), dead.generation});
  });
}

void Runtime::watch(ProcessName process) {
  if (remote_in(process.slot).ok()) return;  // the wire watches its connected peers
  if (!watch_death(process).ok()) return;
  const std::lock_guard lock(contacts_mu_);
  watched_.push_back(process);
}

Result<ProcessName> Runtime::remote_in(wire::ProcessSlot slot) const {
  std::uint32_t generation = 0;
  if (job_.directory().remote_host_of(slot, &generation) == 0) return Errc::unreachable;
  if (lost_[slot].load(std::memory_order_acquire) == std::uint64_t{generation} + 1) return Errc::unreachable;
  return ProcessName{slot, generation};
}

std::vector<ProcessName> Runtime::remote_behind(std::uint32_t nic_address) {
  std::vector<ProcessName> found;
  const job::Placement& placement = job_.placement();
  for (std::uint32_t pe = 0; pe < placement.pe_count(); ++pe) {
    if (placement.of_pe(pe).nic_address != nic_address) continue;
    if (const auto process = remote_in(static_cast<wire::ProcessSlot>(pe)); process.ok())
      found.push_back(process.value());
  }
  return found;
}

bool Runtime::goes_by_wire(wire::ProcessSlot slot) const {
  std::uint32_t generation = 0;
  return wire_for_all_ || job_.directory().remote_host_of(slot, &generation) != 0;
}

Result<PeerRoute> Runtime::connect_by_wire(ProcessName process) {
  if (!wire_is_open_.load(std::memory_order_acquire)) {
    log::error("process {} lives on another host, and this one has no wire: call PMI_Init first",
               process.slot);
    return Errc::unreachable;
  }
  const std::int64_t limit = monotonic_ns() + kPublishNs;
  auto address = job_.directory().wire_address(process.slot);
  while (!address.ok() || address.value().generation != process.generation) {
    if (!alive(process)) return Errc::unreachable;
    if (monotonic_ns() > limit) {
      log::error("process {} does not say where it is reached by the wire", process.slot);
      return Errc::timeout;
    }
    nap(1'000'000);
    address = job_.directory().wire_address(process.slot);
  }
  const Status added = nic_->transport().add_wire_peer(process.slot, address.value().bytes);
  if (!added.ok()) {
    log::error("process {} is not reached by provider {}: {}", process.slot, wire_->provider(),
               errc_name(added.code()));
    return added.code();
  }
  PeerRoute link;
  link.process = process;
  link.nic = empty_nic_;
  link.by_wire = true;
  link.wire_address = std::move(address).value().bytes;
  // One of this host is seen to die sooner than the wire notices.
  if (!remote_in(process.slot).ok()) {
    const Status watched = watch_death(process);
    if (!watched.ok() && watched.code() != Errc::unreachable) return watched.code();
    const std::lock_guard lock(contacts_mu_);
    watched_.push_back(process);
  }
  return Result<PeerRoute>(std::move(link));
}

}  // namespace orrery::nic
