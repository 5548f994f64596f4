// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/events/error_log.hpp"

#include <cstdint>

// What a failed transaction does to its process: by the modes of the domain that it was posted in.
namespace orrery::gni {

// Whether an error ends a process whose domain has these modes (GNI_CDM_MODE_): with ERR_ALL_KILL every
// error does, with ERR_NO_KILL none, and without either those that the device cannot recover from.
bool is_fatal(const nic::ErrorEvent& event, std::uint32_t modes);

// The NIC's hook (nic::Port::on_error); `self` is the modes. Does not return when the error is fatal: the
// process is killed, with a line on stderr that says why.
void on_error(void* self, const nic::ErrorEvent& event);

}  // namespace orrery::gni
