// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace orrery::wire {

// One IP address of this host.
struct InterfaceAddress {
  std::string interface;  // "eth0"
  std::string address;    // "10.0.0.1", "fd00::1"
};

// All of those that are up, in the kernel's order.
std::vector<InterfaceAddress> addresses_of_host();

// What is to be opened: an interface, or an address of ours, or, with both empty, whatever there is.
struct InterfaceChoice {
  std::string interface;
  std::string address;
};

// What ORRERY_INTERFACE means on a host with addresses `here`: an address of it, a network (10.0.0.0/24) that
// it has an address in, else a name, which is not looked up. invalid_param: neither; `why` says what there
// is.
Result<InterfaceChoice> choose_interface(std::string_view text, const std::vector<InterfaceAddress>& here,
                                         std::string* why);

}  // namespace orrery::wire
