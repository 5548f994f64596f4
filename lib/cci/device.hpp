// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "cci.h"
#include "emu/base/status.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Devices: what CCI_CONFIG describes, or what this host has without it. All of them are the emulated NIC
// under the names that configurations use for their transports. The names differ in the keys that they take
// and in the form of their URIs.
namespace orrery::cci {

struct Device {
  struct cci_device shown {};
  std::string name;
  std::string transport;
  std::vector<std::string> arguments;  // "key=value"
  std::vector<const char*> argv;
  int priority = 50;
  bool preferred = false;     // the key `default`
  bool any_user = false;      // other users of this host may connect
  std::string ip;             // dotted; for all but sm
  std::uint16_t port = 0;     // 0: any
  std::uint32_t bufsize = 0;  // of sockets, bytes; 0: the system's
  std::string path = "/tmp/cci/sm";
  std::optional<std::uint32_t> pid, id;

  bool by_address() const { return transport != "sm"; }
};

inline constexpr std::uint32_t kDefaultSendSize = 8192;

// Reads a configuration. `file`: its name, for messages. Errors, with a message on stderr that names
// file, line, key and what is accepted: invalid_param. Devices of unknown transports are left out.
Status parse_devices(std::string_view file, std::string_view text,
                     std::vector<std::unique_ptr<Device>>* devices);

// The devices of this process, the preferred one first: of CCI_CONFIG, or those that this host has; of the
// transports in CCI_CTP alone when that is set. Errors: invalid_param, system (cannot be read), no_match
// (none).
Status find_devices(std::vector<std::unique_ptr<Device>>* devices);

}  // namespace orrery::cci
