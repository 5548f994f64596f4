// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

// The process's one AddressSpace (address_space.hpp) where a library has it that can do without: it gives it
// up to one that cannot.
namespace orrery::memory {

// Whether this process has an AddressSpace now. Any thread.
bool space_exists();

// What AddressSpace::create() calls, once, when there is an AddressSpace already: `give_up` has destroyed it
// when it returns. Set by its holder, once, after its own create(); null takes it back. Any thread; `give_up`
// runs on the thread of the later create().
void lend_space(void (*give_up)());

}  // namespace orrery::memory
