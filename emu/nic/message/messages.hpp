// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/initiator/initiator.hpp"
#include "emu/nic/memory/regions.hpp"
#include "emu/nic/state/mover.hpp"
#include "emu/nic/target/mailbox.hpp"
#include "emu/nic/transport/endpoint.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace orrery::nic {

// Short messages, all but the usual case (message.hpp): connections are opened, a peer's memory is not mapped
// here, a peer is gone.
// Threads: the one that uses the endpoint.
class Messages {
 public:
  Messages(Regions& regions, Initiator& initiator, Mover& mover)
      : regions_(regions), initiator_(initiator), mover_(mover) {}
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  // Opens the endpoint's connection: `local` is our mailbox, `remote` the peer's, both `shape.bytes()` long.
  // The peer may do so later, or have done it before. May map the peer. Errors: invalid_state (not bound, or
  // open already), invalid_param (impossible shape, a key of segments or of nothing), check_local's.
  Errc open(Endpoint& endpoint, const MailboxShape& shape, const MailboxPlace& local,
            const MailboxPlace& remote);
  // send_message() and release_message() where their fast path ends. Errors: not_done (no credit),
  // invalid_state (the connection is broken), and those of Initiator::post_checked().
  Errc send_slowly(Endpoint& endpoint, std::span<const std::byte> header, std::span<const std::byte> data,
                   std::uint32_t id, std::uint8_t tag);
  void send_credit_slowly(Endpoint& endpoint);
  // There was no message: what is owed to the peer is sent. not_done, or invalid_state (garbled).
  Errc find_none(Endpoint& endpoint);

 private:
  Regions& regions_;
  Initiator& initiator_;
  Mover& mover_;
};

}  // namespace orrery::nic
