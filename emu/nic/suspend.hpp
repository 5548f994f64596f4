// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/nic_state.hpp"

#include <cstdint>

namespace orrery::nic {

class Nic;
struct Port;

// Whether the owner of this NIC may start nothing new in that domain.
bool is_suspended(const NicView& nic, std::uint32_t domain);

// Announces that a port's thread is on the general path of an operation, after it has found its domain not
// suspended; waits while it is. The short way need not: what is granted ends when a registration is marked.
// REQUIRES: one live gate per port at a time.
class PostGate {
 public:
  PostGate(Nic& nic, Port& port);
  ~PostGate();
  PostGate(const PostGate&) = delete;
  PostGate& operator=(const PostGate&) = delete;

 private:
  Port& port_;
};

}  // namespace orrery::nic
