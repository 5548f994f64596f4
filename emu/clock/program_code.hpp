// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// What the program's own code says about how it will be timed.
namespace orrery::clock {

// Whether x86 code reads the processor's time-stamp counter: rdtsc or rdtscp, and soon afterwards the shift
// that joins its two halves. Data that looks so is rare, but possible.
bool reads_counter(std::span<const std::byte> code);

// The same of the code of the program and of its own libraries, those outside the system's folders; false on
// other processors. Milliseconds for a large program. Thread-safe.
bool program_reads_counter();

// Whether the program's calls of clock_gettime() are libc's, and not those of this library: it was loaded
// behind libc (a program linked to an API's library alone, a plug-in). Thread-safe.
bool program_has_libc_clock();

// Whether valgrind runs this process: it moves signals, which the clock of polled memory needs.
bool runs_under_valgrind();

}  // namespace orrery::clock
