// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "include/dmapp/dmapp.h"

#include <cstdint>

// Attributes of requests, brought into range. Pure functions; any thread.
namespace orrery::dmapp {

using Attributes = dmapp_rma_attrs_ext_t;

// What holds when nothing is asked for.
Attributes default_attributes();
// What `asked` comes to at init: members out of range are clamped, which clients that leave some unset rely
// on.
Attributes at_init(const dmapp_rma_attrs_ext_t& asked);
Attributes at_init(const dmapp_rma_attrs_t& asked);
// The same for a thread that has `now`: what is set at init only stays.
Attributes later(const Attributes& now, const dmapp_rma_attrs_ext_t& asked);
Attributes later(const Attributes& now, const dmapp_rma_attrs_t& asked);
dmapp_rma_attrs_t short_form(const Attributes& attributes);

// How the NIC routes it: the words of Request::delivery_mode.
std::uint16_t delivery_of(std::uint32_t routing);

}  // namespace orrery::dmapp
