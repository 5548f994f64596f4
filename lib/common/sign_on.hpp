// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/job/job.hpp"
#include "emu/nic/nic.hpp"

#include <cstdint>
#include <optional>

// What every API's library does when a process signs on to its NIC: the port of a domain, found by others
// through the job's directory.
namespace orrery::common {

// One sign-on. A value; NIC and job belong to the process, the port to the NIC.
struct SignOn {
  nic::Nic* nic = nullptr;
  job::Job* job = nullptr;
  nic::Port* port = nullptr;
  job::EndpointRef published;
};

// Opens a port of the domain on this process's NIC and publishes it under `instance`. The first one of a
// process starts its runtime. Blocks for system calls only. Errors: those of nic::Runtime::of_process and of
// job::Job::publish, and then nothing was opened.
Result<SignOn> sign_on(job::DomainId domain, std::uint32_t instance);
// Ends it. `close_port` false: operations in flight still name the port, which then stays with the NIC.
void sign_off(const SignOn& signed_on, bool close_port = true);

// Calls `forget` at the end of the process and in a child of fork(): no handle outlives the NIC that it
// stands on, neither into exit handlers that run after the NIC's own, nor into a child, which has no NIC.
// Once for each function, however often it is asked for. REQUIRES: the runtime of the process has started.
void forget_in_time(void (*forget)());

// The time, of Waits::now_ns(), at which a wait of so many milliseconds from now ends; nothing when it never
// does: a time beyond what the clock can count to is for ever, as all ones are, of 64 bits or of 32.
std::optional<std::int64_t> deadline_of(nic::Nic& nic, std::uint64_t timeout_ms);

}  // namespace orrery::common
