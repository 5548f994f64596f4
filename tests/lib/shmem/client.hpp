// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include <shmem.h>

// What a client of OpenSHMEM begins with. One job per program; every PE runs the same tests in the same
// order.
namespace client {

struct Pe {
  int me = 0;
  int count = 1;

  static const Pe& get() {
    static const Pe pe;
    return pe;
  }
  int next() const { return (me + 1) % count; }
  int previous() const { return (me + count - 1) % count; }

  Pe(const Pe&) = delete;
  Pe& operator=(const Pe&) = delete;

 private:
  Pe() {
    int level = -1;
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &level) != 0 || level != SHMEM_THREAD_MULTIPLE) std::abort();
    me = shmem_my_pe();
    count = shmem_n_pes();
  }
};

// Symmetric memory of a test, zeroed. Collective, at both ends.
template <typename T>
class Shared {
 public:
  explicit Shared(std::size_t count) : block_(static_cast<T*>(shmem_calloc(count, sizeof(T)))) {
    if (block_ == nullptr) shmem_global_exit(3);
  }
  ~Shared() { shmem_free(block_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* get() const { return block_; }
  T& operator[](std::size_t i) const { return block_[i]; }

 private:
  T* const block_;
};

}  // namespace client
