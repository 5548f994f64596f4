// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>

namespace orrery::clock {

// Clock::touch(data_of(process)) instead of touch(process): a message is in a mailbox of that process, and
// its event follows in a queue there. A program that looks at the mailbox goes on for it; one that looks at
// the queue only goes on for the event.
inline constexpr std::uint32_t kDataTouch = std::uint32_t{1} << 31;
constexpr std::uint32_t data_of(std::uint32_t process_slot) { return process_slot | kDataTouch; }
constexpr bool is_data_touch(std::uint32_t touched) { return (touched & kDataTouch) != 0; }
constexpr std::uint32_t process_of_touch(std::uint32_t touched) { return touched & ~kDataTouch; }

}  // namespace orrery::clock
