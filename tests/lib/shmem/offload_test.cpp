// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/shmem/client.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include <dmapp.h>

// Under a machine's clock, and with DMAPP's threshold of the block transfer engine elsewhere than at the
// start: a put, with a signal or without, returns when its source may be written again.
namespace {

using client::Pe;
using client::Shared;

constexpr std::size_t kMost = 40'000;

// Of the calling thread.
void set_threshold(std::uint32_t bytes) {
  dmapp_rma_attrs_t attributes;
  ASSERT_EQ(dmapp_get_rma_attrs(&attributes), DMAPP_RC_SUCCESS);
  attributes.offload_threshold = bytes;
  ASSERT_EQ(dmapp_set_rma_attrs(&attributes, &attributes), DMAPP_RC_SUCCESS);
  ASSERT_EQ(attributes.offload_threshold, bytes);
}

// Puts of several lengths by the calling thread, whose sources are written again at once.
void put_and_write_again() {
  const Pe& pe = Pe::get();
  const Shared<char> there(kMost);
  const Shared<std::uint64_t> signal(1);
  std::vector<char> source(kMost);
  std::uint64_t raised = 0;
  for (const std::size_t bytes : {std::size_t{63}, std::size_t{64}, std::size_t{2000}, std::size_t{4095},
                                  std::size_t{4096}, std::size_t{9000}, kMost}) {
    for (const bool with_signal : {false, true}) {
      std::memset(there.get(), 0, kMost);
      shmem_barrier_all();
      std::memset(source.data(), 7, bytes);
      if (with_signal) {
        ++raised;
        shmem_putmem_signal(there.get(), source.data(), bytes, signal.get(), raised, SHMEM_SIGNAL_SET,
                            pe.next());
        std::memset(source.data(), 9, bytes);
        shmem_signal_wait_until(signal.get(), SHMEM_CMP_EQ, raised);
      } else {
        shmem_putmem(there.get(), source.data(), bytes, pe.next());
        std::memset(source.data(), 9, bytes);
        shmem_barrier_all();
      }
      EXPECT_EQ(std::count(there.get(), there.get() + bytes, 7), static_cast<std::ptrdiff_t>(bytes))
          << bytes << (with_signal ? " bytes with a signal" : " bytes");
      shmem_barrier_all();
    }
  }
}

TEST(ShmemOffload, SourcesMayBeWrittenAgainWhateverTheThreshold) {
  Pe::get();
  dmapp_rma_attrs_t before;
  ASSERT_EQ(dmapp_get_rma_attrs(&before), DMAPP_RC_SUCCESS);
  for (const std::uint32_t threshold : {64u, 1u, 8192u, 1u << 30}) {
    SCOPED_TRACE(testing::Message() << "threshold " << threshold);
    set_threshold(threshold);
    put_and_write_again();
  }
  set_threshold(before.offload_threshold);
}

TEST(ShmemOffload, EachThreadHasAThresholdOfItsOwn) {
  Pe::get();
  std::thread([] {
    set_threshold(64);
    put_and_write_again();
  }).join();
  put_and_write_again();
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  shmem_finalize();
  return failed;
}
