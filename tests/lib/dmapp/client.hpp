// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <dmapp.h>
#include <pmi.h>

// What a client of DMAPP begins with. One job per program; every PE runs the same tests in the same order.
namespace client {

// Ends the job: a PE that stops in the middle of a test would leave the others waiting.
#define REQUIRE_SUCCESS(call)                                                  \
  do {                                                                         \
    const dmapp_return_t required = (call);                                    \
    if (required != DMAPP_RC_SUCCESS) {                                        \
      const char* why = "";                                                    \
      dmapp_explain_error(required, &why);                                     \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, why); \
      PMI_Abort(1, #call);                                                     \
    }                                                                          \
  } while (false)

// This PE, once for all tests of a program.
struct Pe {
  dmapp_jobinfo_t job{};
  dmapp_rma_attrs_ext_t attributes{};
  dmapp_seg_desc_t* heap = nullptr;
  dmapp_seg_desc_t* data = nullptr;
  int me = 0;
  int count = 1;

  static dmapp_rma_attrs_ext_t& wanted() {
    static dmapp_rma_attrs_ext_t attrs = [] {
      dmapp_rma_attrs_ext_t defaults;
      REQUIRE_SUCCESS(dmapp_get_rma_attrs_ext(&defaults));
      return defaults;
    }();
    return attrs;
  }
  static Pe& get() {
    static Pe pe;
    return pe;
  }
  int next() const { return (me + 1) % count; }
  int previous() const { return (me + count - 1) % count; }
  void barrier() const { EXPECT_EQ(PMI_Barrier(), PMI_SUCCESS); }
  template <typename T>
  T* shared(std::size_t count_of) const {
    auto* const block = static_cast<T*>(dmapp_sheap_malloc(count_of * sizeof(T)));
    if (block == nullptr) PMI_Abort(1, "dmapp_sheap_malloc");
    for (std::size_t i = 0; i < count_of; ++i) block[i] = T{};
    barrier();
    return block;
  }
  void unshare(void* block) const {
    barrier();
    dmapp_sheap_free(block);
  }
  template <typename T>
  std::vector<T> gather(const T& mine) const {
    struct Card {
      std::int64_t pe;
      T value;
    };
    Card card{me, mine};
    std::vector<Card> cards(static_cast<std::size_t>(count));
    EXPECT_EQ(PMI_Allgather(&card, cards.data(), sizeof card), PMI_SUCCESS);
    std::vector<T> values(static_cast<std::size_t>(count));
    for (const Card& c : cards) values[static_cast<std::size_t>(c.pe)] = c.value;
    return values;
  }

  Pe(const Pe&) = delete;
  Pe& operator=(const Pe&) = delete;

 private:
  Pe() {
    REQUIRE_SUCCESS(dmapp_init_ext(&wanted(), &attributes));
    REQUIRE_SUCCESS(dmapp_get_jobinfo(&job));
    heap = &job.sheap_seg;
    data = &job.data_seg;
    me = job.pe;
    count = job.npes;
  }
};

}  // namespace client
