// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

// What the other files need of this PE's message queue (queue.cpp).
namespace orrery::dmapp {

// Runs callbacks for what came to a queue without a thread of its own. Any thread.
void run_messages();
// Whether the calling thread is in a callback, or in a call that waits.
bool is_in_call();
// Ends the queue, if there is one. Before the world ends.
void end_queue();

}  // namespace orrery::dmapp
