// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/nic.hpp"

#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace orrery::nic {
namespace {

// What a NIC stores into the memory of another NIC of the process can race with the program, and is seen to.
TEST(ThreadSanitizer, ReportsARaceBetweenTwoNicsOfAProcess) {
#if !defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "built without ThreadSanitizer";
#else
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(3);
    box::World world(2, box::Path::direct);
    std::vector<std::uint64_t> source(8, 1);
    std::vector<std::uint64_t> target(8, 2);
    const auto at = reinterpret_cast<std::uint64_t>(target.data());
    const auto key = world[1].nic().register_region(world[1].port(), at, 64, 0, nullptr);
    const auto endpoint = world.endpoint(0, 1, world[0].nic().create_queue(8, 0).value());
    std::thread other([&] {
      Request put;
      put.op = Op::put;
      put.local_address = reinterpret_cast<std::uint64_t>(source.data());
      put.remote_address = at;
      put.length = 8;
      put.remote = key.value();
      if (world[0].nic().post(*endpoint, put) != Errc::ok) _exit(4);
    });
    target[0] = 99;
    other.join();
    std::exit(0);  // ThreadSanitizer turns it into its own code when it has reported
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 66);
#endif
}

}  // namespace
}  // namespace orrery::nic
