// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <signal.h>

namespace orrery::memory {

// The SIGSEGV handler: waits at a chunk that is being switched under Blocker::protect, maps the adopted
// extents in a forked child, ends a guarded run (guarded.hpp), and hands everything else on. The SIGBUS
// handler ends a guarded run, and hands on.
//
// Puts both in front of whatever handles the signals now, which becomes what they chain to; nothing if they
// are in front already. Called before each use of it, so a handler installed after ours is found again. Any
// thread, one at a time.
void put_fault_handler_in_front();

// The same for one access of many: a look is a system call, so while a thread of ours promises to call for
// another look in every period of its own, one look serves until it does. Otherwise every access looks.
void keep_fault_handler_in_front();
// The promise, and each call for another look. Any thread.
void call_for_fault_handler_look();
// One more call, from the caller that delays that thread's period; nothing without a promise. Any thread.
void renew_fault_handler_look();
// The end of the promise. Any thread.
void look_for_fault_handler_each_time();

// The hook that is asked first about a fault in this process; true: the access is tried again. Called in the
// handler, on the thread that faulted. One for the process; set before any fault that it is for.
using FaultHook = bool (*)(const siginfo_t* info, void* context);
void set_fault_hook(FaultHook hook);

// Around a fork: a child must not inherit the lock of put_fault_handler_in_front held by a thread that it
// does not have.
void lock_fault_handler();
void unlock_fault_handler();

// Puts the handlers that ours chain to back, where ours are still in front.
void withdraw_fault_handler();

}  // namespace orrery::memory
