// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What the NIC asks of this process's own memory.
#include "emu/base/log.hpp"
#include "emu/job/process_stat.hpp"
#include "emu/memory/fault_handler.hpp"
#include "emu/memory/guarded.hpp"
#include "emu/nic/host/runtime.hpp"

namespace orrery::nic {

Result<HostServices::Range> Runtime::inspect(std::uint64_t address, std::uint64_t length) {
  const auto info = memory_->inspect(address, length);
  if (info.ok() && info.value().denied) return Errc::permission;
  if (!info.ok() || !info.value().mapped) return Errc::invalid_param;
  return Range{.readable = true,
               .writable = info.value().writable,
               .direct = info.value().cover == memory::Cover::direct};
}

Status Runtime::adopt(std::uint64_t begin, std::uint64_t end, SwitchGuard& guard) {
  struct Adapter final : memory::SwitchGuard {
    HostServices::SwitchGuard& guard;
    explicit Adapter(HostServices::SwitchGuard& g) : guard(g) {}
    Status before_switch(memory::Range chunk) override {
      memory::call_for_fault_handler_look();  // it may be a while until the service thread's next round
      return guard.before_switch(chunk.begin, chunk.end) ? Status{} : Status{Errc::timeout};
    }
    void after_switch(memory::Range, bool) override {}
  } adapter(guard);
  return memory_->adopt(begin, end - begin, adapter);
}

HostServices::Pages Runtime::adoptable_around(std::uint64_t page, std::uint64_t low, std::uint64_t high) {
  if (!hears_of_unmaps_) memory::set_unmap_listener(&unmaps_);
  hears_of_unmaps_ = true;
  if (!memory::announce_move({low, high})) return {};
  const memory::Range run = memory_->adoptable_around(page, {low, high});
  return {run.begin, run.end};
}

void Runtime::cut_off(std::uint64_t begin, std::uint64_t end) {
  job_.loop().run_and_wait([&] {
    memory::NoPeers no_peers;
    const Status released = memory_->release(begin, end - begin, no_peers);
    if (!released.ok()) log::warn("a stalled peer may still write to deregistered memory at {:#x}", begin);
  });
}

void Runtime::settle(std::uint64_t begin, std::uint64_t end) { memory_->settle(begin, end - begin); }

Errc Runtime::guarded(Errc (*body)(void*), void* argument) {
  Errc result = Errc::ok;
  struct Call {
    Errc (*body)(void*);
    void* argument;
    Errc* result;
  } call{body, argument, &result};
  const bool whole = memory::run_guarded(
      [](void* p) {
        auto* c = static_cast<Call*>(p);
        *c->result = c->body(c->argument);
      },
      &call);
  return whole ? result : Errc::bounds;
}

Errc Runtime::attach_write(ProcessName process, const MrtEntry& entry, std::uint64_t word, std::uint64_t to,
                           const std::byte* from, std::uint64_t bytes) {
  const Contact* contact = contacts_[process.slot].load(std::memory_order_acquire);
  if (contact == nullptr) return Errc::unsupported;
  // Its slot is another process's by now.
  if (contact->generation != process.generation) return Errc::unreachable;
  if (!contact->can_attach) return Errc::unsupported;
  return contact->attach.write_while(entry.control, word, to, from, bytes).code();
}

Errc Runtime::attach_read(ProcessName process, std::byte* to, std::uint64_t from, std::uint64_t bytes) {
  const Contact* contact = contacts_[process.slot].load(std::memory_order_acquire);
  if (contact == nullptr) return Errc::unsupported;
  // Its slot is another process's by now.
  if (contact->generation != process.generation) return Errc::unreachable;
  if (!contact->can_attach) return Errc::unsupported;
  return contact->attach.read(to, from, bytes).code();
}

// ---- whether a process may be at our memory ----

bool Runtime::slot_alive(wire::ProcessSlot slot) {
  if (slot == nic_->self()) return true;
  const Contact* contact = contacts_[slot].load(std::memory_order_acquire);
  if (contact != nullptr && alive({slot, contact->generation})) return true;
  // It may hold our memory although we never spoke to it, or to one before it: ask the directory which
  // processes live there.
  for (const auto& process : job_.directory().live_processes()) {
    if (process.index == slot) return true;
  }
  return remote_in(slot).ok();
}

bool Runtime::slot_stopped(wire::ProcessSlot slot) {
  for (const auto& process : job_.directory().live_processes()) {
    if (process.index != slot) continue;
    const auto info = job_.directory().info_of(process);
    // A pid of another namespace says nothing.
    return info.ok() && info.value().pid_namespace == job::pid_namespace() &&
           job::is_stopped(info.value().pid);
  }
  return false;
}

}  // namespace orrery::nic
