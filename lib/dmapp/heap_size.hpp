// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <string>

namespace orrery::dmapp {

// What says how large the symmetric heap is to be.
struct HeapSize {
  std::string variable;     // the name that a program sets it by
  std::string text;         // its value; the default's, if is_default
  bool is_default = false;  // the variable is not set
  std::uint64_t added = 0;  // bytes more than that, for a library above this one

  // As messages show the value.
  std::string shown() const { return is_default ? text + " (the default)" : text; }
};

// The heap of the next dmapp_init, instead of what XT_SYMMETRIC_HEAP_SIZE says. Not beside dmapp_init.
// For lib/shmem, which this library exports it to.
[[gnu::visibility("default")]] void set_heap_size(const HeapSize& size);

// Whether the last dmapp_init failed because of the heap: then one PE of the job has said so in a line that
// names the variable, its value and what is accepted. Any thread. For lib/shmem, which this library exports
// it to.
[[gnu::visibility("default")]] bool heap_refused();
void set_heap_refused(bool is);

// What set_heap_size() said, else XT_SYMMETRIC_HEAP_SIZE, else 64M.
HeapSize heap_size();

}  // namespace orrery::dmapp
