// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/ports.hpp"

#include "emu/base/bury.hpp"
#include "emu/nic/state/hazard.hpp"

#include <algorithm>
#include <bit>

namespace orrery::nic {

Port* Ports::open(std::uint16_t domain, std::uint32_t nic_address, std::uint32_t instance) {
  const std::lock_guard lock(mu_);
  std::uint32_t taken = 0;
  for (const auto& port : ports_) taken |= 1u << port->hazard_slot;
  auto port = std::make_unique<Port>();
  port->domain = domain;
  port->nic_address = nic_address;
  port->instance = instance;
  port->hazard_slot = std::min(static_cast<std::uint32_t>(std::countr_one(taken)), kSharedHazardSlot);
  port->errors = &errors_;
  ports_.push_back(std::move(port));
  return ports_.back().get();
}

void Ports::close(Port* port) {
  const std::lock_guard lock(mu_);
  const auto at = std::find_if(ports_.begin(), ports_.end(), [&](const auto& p) { return p.get() == port; });
  if (at == ports_.end()) return;
  bury(std::move(*at));  // a thread of the program may be looking for its datagrams
  ports_.erase(at);
}

std::uint32_t Ports::count() {
  const std::lock_guard lock(mu_);
  return static_cast<std::uint32_t>(ports_.size());
}

bool Ports::has(std::uint16_t domain, std::uint32_t instance) {
  const std::lock_guard lock(mu_);
  return std::any_of(ports_.begin(), ports_.end(),
                     [&](const auto& port) { return port->domain == domain && port->instance == instance; });
}

void Ports::tell_of_error(const ErrorEvent& event) {
  errors_.report(event);
  // Called under the lock, so that the port, and what its API gave it, are still there.
  const std::lock_guard lock(mu_);
  const auto hears = std::find_if(ports_.begin(), ports_.end(), [&](const auto& one) {
    return one->domain == event.domain && one->on_error != nullptr;
  });
  if (hears != ports_.end()) (*hears)->on_error((*hears)->on_error_self, event);
}

bool Ports::any_posting(std::uint16_t domain) {
  const std::lock_guard lock(mu_);
  return std::any_of(ports_.begin(), ports_.end(), [domain](const auto& port) {
    // Acquire: a thread that left the path has left its frames to be seen.
    return port->domain == domain &&
           (port->others_posting.load(std::memory_order_acquire) != 0 ||
            std::any_of(port->posting.begin(), port->posting.end(),
                        [](const auto& thread) { return thread.load(std::memory_order_acquire) != 0; }));
  });
}

}  // namespace orrery::nic
