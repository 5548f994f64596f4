// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <memory>

// Objects that have ended while a thread may still read them.
namespace orrery {

// Takes an object that nothing names any more, and frees it once 64 others have been buried after it: a
// thread that found it just before reads what is still there. For small objects that programs end seldom. Any
// thread; takes a lock for a moment, and frees without it.
void bury(void* object, void (*free)(void*));
template <typename T>
void bury(std::unique_ptr<T> object) {
  if (object != nullptr) bury(object.release(), [](void* dead) { delete static_cast<T*>(dead); });
}

}  // namespace orrery
