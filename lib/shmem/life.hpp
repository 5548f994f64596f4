// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>

// Which PEs live: what a wait must know whose end another PE owes.
namespace orrery::shmem {

inline constexpr std::int64_t kLookNs = 10'000'000;  // between looks at which PEs live

inline constexpr std::int64_t kEndNs = 300'000'000;  // within which an end is known

// Tells the others how this process is named, and learns it of them. Collective. Returns the highest level of
// threads that a PE asked for.
int start_life(int level);

// A PE that has ended; -1: all live. Reads the job's directory, a line for each PE.
int pe_that_is_gone();

// Ends the job, naming the PE, if one of them has ended.
void fail_if_a_pe_is_gone(const char* call);

// The same after an operation that failed: a death that it came from is known a little later perhaps.
void fail_if_a_pe_just_ended(const char* call);
bool has_just_ended(int pe);

// The same now and then only: for calls that a program makes in a loop until something is there.
void look_who_lives(const char* call);

}  // namespace orrery::shmem
