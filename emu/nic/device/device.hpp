// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/device/device_registers.hpp"
#include "emu/nic/device/resource_use.hpp"
#include "emu/nic/device/translation_table.hpp"

namespace orrery::nic {

// What a NIC's driver would keep: units that calls about the device read and set, and no operation looks at.
// Threads: any; each has a lock of its own, or none.
struct Device {
  DeviceRegisters registers;
  ResourceUse resources;
  TranslationTable translation;
};

}  // namespace orrery::nic
