// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <memory>

namespace bench {

// Puts of 8 B of Portals 3.3 to the other of two PEs, told by events. The library is opened by its file: its
// calls have names of Portals 4's, with other arguments. REQUIRES: PMI.
class Portals3Channel {
 public:
  explicit Portals3Channel(int rank);
  ~Portals3Channel();
  Portals3Channel(const Portals3Channel&) = delete;
  Portals3Channel& operator=(const Portals3Channel&) = delete;

  void send(int count);
  void receive(int count);

 private:
  struct Calls;
  std::unique_ptr<Calls> calls_;
};

}  // namespace bench
