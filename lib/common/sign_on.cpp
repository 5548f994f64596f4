// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/common/sign_on.hpp"

#include "emu/nic/host/runtime.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <mutex>

#include <pthread.h>

namespace orrery::common {

namespace {

// One for each library of a program; a C function that atexit takes knows no more than what is here.
constexpr std::size_t kMostForgetters = 16;
std::mutex g_mu;
std::array<void (*)(), kMostForgetters> g_forgetters{};  // written under g_mu

void forget_all() {
  for (const auto forget : g_forgetters) {
    if (forget != nullptr) forget();
  }
}

}  // namespace

Result<SignOn> sign_on(job::DomainId domain, std::uint32_t instance) {
  const auto runtime = nic::Runtime::of_process();
  if (!runtime.ok()) return runtime.code();
  job::Job& job = runtime.value()->job();
  const auto published = job.publish(domain, instance, 0);
  if (!published.ok()) return published.code();
  nic::Nic& nic = runtime.value()->nic();
  return SignOn{.nic = &nic,
                .job = &job,
                .port = nic.open_port(static_cast<std::uint16_t>(domain), job.nic_address(), instance),
                .published = published.value()};
}

void sign_off(const SignOn& signed_on, bool close_port) {
  if (signed_on.published.index != UINT32_MAX) signed_on.job->withdraw(signed_on.published);
  if (close_port && signed_on.port != nullptr) signed_on.nic->close_port(signed_on.port);
}

void forget_in_time(void (*forget)()) {
  const std::lock_guard lock(g_mu);
  if (std::find(g_forgetters.begin(), g_forgetters.end(), forget) != g_forgetters.end()) return;
  const auto place = std::find(g_forgetters.begin(), g_forgetters.end(), nullptr);
  if (place == g_forgetters.end()) return;
  if (g_forgetters[0] == nullptr) {
    std::atexit(forget_all);
    pthread_atfork(nullptr, nullptr, forget_all);
  }
  *place = forget;
}

std::optional<std::int64_t> deadline_of(nic::Nic& nic, std::uint64_t timeout_ms) {
  const std::int64_t now = nic.waits().now_ns();
  constexpr std::int64_t kNsPerMs = 1'000'000;
  const auto most = static_cast<std::uint64_t>((std::numeric_limits<std::int64_t>::max() - now) / kNsPerMs);
  if (timeout_ms >= most || timeout_ms == UINT32_MAX) return std::nullopt;
  return now + static_cast<std::int64_t>(timeout_ms) * kNsPerMs;
}

}  // namespace orrery::common
