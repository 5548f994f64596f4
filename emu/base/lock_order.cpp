// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/lock_order.hpp"

#include "emu/base/check.hpp"

#include <array>
#include <cstddef>

namespace orrery::lock_order {

namespace {

struct Held {
  int rank = 0;
  const char* name = nullptr;
};
struct Stack {
  std::array<Held, 32> held{};
  std::size_t count = 0;
};
constinit thread_local Stack t_stack;

}  // namespace

void taking(int rank, const char* name, bool waits) {
  if (!waits) return;
  const Stack& stack = t_stack;
  for (std::size_t i = 0; i < stack.count; ++i)
    ORRERY_CHECK(stack.held[i].rank < rank, "the lock of {} is taken while that of {} is held", name,
                 stack.held[i].name);
}

void taken(int rank, const char* name) {
  Stack& stack = t_stack;
  ORRERY_CHECK(stack.count < stack.held.size(), "{} locks are held", stack.count);
  stack.held[stack.count++] = {rank, name};
}

void left(int rank) {
  Stack& stack = t_stack;
  std::size_t i = stack.count;
  while (i != 0 && stack.held[i - 1].rank != rank) --i;
  ORRERY_CHECK(i != 0, "a lock of rank {} is let go by a thread that does not hold it", rank);
  for (--stack.count; i - 1 < stack.count; ++i) stack.held[i - 1] = stack.held[i];
}

}  // namespace orrery::lock_order
