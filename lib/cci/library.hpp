// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/cci/device.hpp"
#include "lib/cci/endpoint.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

// What the process has of CCI between the first cci_init and the last cci_finalize.
namespace orrery::cci {

struct Library {
  std::mutex mu;
  std::uint32_t users = 0;
  std::uint32_t flags = 0;
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<cci_device_t*> shown;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
};
Library& library();

// Once, when the library is made. A child of fork(2) has no part in its parent's endpoints: their descriptors
// are closed there, so that a peer learns of the parent's death, and their memory is its own. The child may
// start the library anew.
void register_fork_handlers();

}  // namespace orrery::cci
