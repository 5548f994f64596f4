// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/initiator/fast_path.hpp"
#include "emu/nic/target/amo_unit.hpp"

// The fast path of an AMO of one word, as fast_path.hpp has it for a put: through a key that was granted
// before, to a word that is mapped here, past the cache. Everything else is Initiator::post's.
namespace orrery::nic {

// One AMO, already checked by the API layer as far as its own rules go. transfer.length is that of one word;
// transfer.local_address, where the old value goes, is looked at for fetching commands alone.
struct AmoTransfer {
  Transfer transfer;
  std::uint8_t command = 0;  // valid, not cached
  std::uint64_t a = 0;
  std::uint64_t b = 0;
};

namespace detail {

template <typename Word>
[[gnu::always_inline]] inline void apply_here(std::byte* word, const AmoTransfer& amo) {
  const Word old = amo::apply(reinterpret_cast<Word*>(word), amo.command, static_cast<Word>(amo.a),
                              static_cast<Word>(amo.b));
  if (amo::fetches(amo.command))
    std::memcpy(reinterpret_cast<void*>(amo.transfer.local_address), &old, sizeof old);
}

}  // namespace detail

// Outcomes and threads: as through_grant.
[[gnu::always_inline]] inline Errc try_fast_amo(Endpoint& endpoint, const AmoTransfer& amo) {
  if ((amo.transfer.remote_address & (amo.transfer.length - 1)) != 0) [[unlikely]]
    return Errc::not_done;
  return through_grant<true>(
      endpoint, amo.transfer, [&amo](std::byte * here) __attribute__((always_inline)) {
        if ((amo.command & kAmoNarrow) == 0) {
          detail::apply_here<std::uint64_t>(here, amo);
        } else {
          detail::apply_here<std::uint32_t>(here, amo);
        }
      });
}

}  // namespace orrery::nic
