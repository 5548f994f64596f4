// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/portals4/process.hpp"

#include "emu/clock/virtual_clock.hpp"
#include "lib/portals4/frame_server.hpp"

namespace orrery::portals4 {

namespace {

// The domain of all processes of a job that speak this interface.
constexpr std::uint8_t kProtectionTag = 253;
constexpr std::uint32_t kCookie = 0x506f7274;

}  // namespace

Process& Process::create() {
  static auto* const process = new Process;
  // Release: what get() finds is whole.
  s_process.store(process, std::memory_order_release);
  return *process;
}

int Process::begin() {
  if (is_started()) return PTL_OK;
  const Status started = start({.protection_tag = kProtectionTag,
                                .cookie = kCookie,
                                .place = 0,
                                .shape = {},
                                .pids = PTL_PID_MAX,
                                .has_pid = has_pid});
  if (started.code() == Errc::no_memory) return PTL_NO_SPACE;
  if (!started.ok()) return PTL_FAIL;
  if (clock::Clock* const clock = this->clock(); clock != nullptr && clock->is_virtual()) {
    // Triggers fire at their counter's time, whatever the program does.
    works_in_time_ = static_cast<clock::VirtualClock*>(clock);
    works_in_time_->set_work([](void* self) { run_due(static_cast<Process*>(self)->self()); }, this);
  }
  return PTL_OK;
}

bool Process::prepare(std::uint32_t* pid) {
  if (begin() != PTL_OK) return false;
  *pid = 1 + self().name.slot;
  return true;
}

int Process::open(ptl_pid_t wanted) {
  if (const int begun = begin(); begun != PTL_OK) return begun;
  if (is_signed_on()) return wanted == PTL_PID_ANY || wanted == pid() ? PTL_OK : PTL_PID_IN_USE;
  const Status signed_on = sign_on(wanted == PTL_PID_ANY ? kAnyPid : wanted, 1 + self().name.slot);
  if (!signed_on.ok()) return signed_on.code() == Errc::no_resource ? PTL_NO_SPACE : PTL_PID_IN_USE;
  FrameServer::get().start(pid());
  return PTL_OK;
}

void Process::compute_passes() { works_in_time_->compute_passes(); }

void Process::close() {
  if (is_signed_on()) FrameServer::get().stop();
  sign_off();
}

bool Process::any_open() const {
  for (const auto& one : interfaces) {
    if (one.references != 0) return true;
  }
  return false;
}

}  // namespace orrery::portals4
