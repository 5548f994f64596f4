// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A program that a PE starts does not get the job's memory, in which its secret lies.
#include "tests/lib/gni/client.hpp"

#include <array>
#include <cstdio>
#include <string>

namespace {

// What the descriptors of a program that is started now are.
std::string descriptors_of_a_new_program() {
  std::FILE* const shell = popen("ls -l /proc/self/fd/ 2>&1", "r");
  std::string all;
  std::array<char, 512> line{};
  while (shell != nullptr && std::fgets(line.data(), line.size(), shell) != nullptr) all += line.data();
  if (shell != nullptr) pclose(shell);
  return all;
}

TEST(Inherited, NothingOfTheJobIs) {
  // A PE that has not joined hands it on: a program that it starts may be the client.
  EXPECT_NE(descriptors_of_a_new_program().find("orrery-directory"), std::string::npos);
  const client::Pmi& pmi = client::Pmi::get();
  const client::Domain domain(0, 100);
  std::array<std::uint64_t, 512> memory{};
  const gni_mem_handle_t handle = domain.memory(memory.data(), sizeof memory);
  (void)pmi.gather(handle);
  const std::string inherited = descriptors_of_a_new_program();
  EXPECT_NE(inherited.find(" 0 -> "), std::string::npos) << inherited;
  EXPECT_EQ(inherited.find("memfd:"), std::string::npos) << inherited;
  pmi.barrier();
}

}  // namespace
