// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/device/fatal.hpp"

#include "emu/base/log.hpp"
#include "include/gni/gni_pub.h"
#include "lib/gni/device/device_status.hpp"

#include <signal.h>
#include <unistd.h>

namespace orrery::gni {

bool is_fatal(const nic::ErrorEvent& event, std::uint32_t modes) {
  if (event.corrected || event.status == Errc::ok || (modes & GNI_CDM_MODE_ERR_NO_KILL) != 0) return false;
  return (modes & GNI_CDM_MODE_ERR_ALL_KILL) != 0 ||
         !device_status_recoverable(static_cast<std::uint64_t>(device_status_of(event.status)));
}

void on_error(void* self, const nic::ErrorEvent& event) {
  if (!is_fatal(event, static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(self)))) return;
  const auto code = static_cast<std::uint64_t>(device_status_of(event.status));
  log::error(
      "a transaction with NIC address {} ended in {} ({:#04x}), which ends this process; with "
      "GNI_CDM_MODE_ERR_NO_KILL it would be an event alone",
      event.nic_address, device_status_name(code), code);
  // As the driver would: no handler of the program's runs.
  (void)kill(getpid(), SIGKILL);
}

}  // namespace orrery::gni
