// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/nic.hpp"

#include <cstddef>
#include <cstdint>

namespace orrery::gni {

// Asks for the registered memory of a channel's buffers to be moved into the memory file before a sender uses
// it: sends then need no other process. It is new memory of ours, so that costs its application nothing.
// `self` is bound to our own address; `at` begins the registration. Where adoption is off nothing happens.
inline void ask_for_direct(nic::Nic& nic, nic::Endpoint& self, const nic::MemKey& key, std::byte* at) {
  // A put of a word to itself: the endpoint then knows us as its peer.
  nic::Request request;
  request.local_address = request.remote_address = reinterpret_cast<std::uint64_t>(at);
  request.length = sizeof(std::uint64_t);
  request.remote = key;
  if (nic.options().may_adopt && nic.post(self, request) == Errc::ok)
    nic.initiator().ask_for_adoption(self, key);
}

}  // namespace orrery::gni
