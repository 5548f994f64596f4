// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/waiting_call.hpp"

#include "emu/base/wait.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

namespace orrery::job {
namespace {

class WaitingCallTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = HostDirectory::create({});
    ASSERT_TRUE(made.ok());
    directory = std::move(made).value();
    const auto joined = directory->join({.rank = 0, .socket_name = "nobody"});
    ASSERT_TRUE(joined.ok());
    self = joined.value();
  }
  std::unique_ptr<HostDirectory> directory;
  ProcessRef self;
};

TEST_F(WaitingCallTest, IsToldWhileItLasts) {
  const std::int64_t before = monotonic_ns();
  {
    const WaitingCall here(*directory, self, "GNI_CqWaitEvent");
    const auto told = sleeping_threads(*directory, self);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].call, "GNI_CqWaitEvent");
    EXPECT_EQ(told[0].thread, gettid());
    EXPECT_GE(told[0].since_ns, before);
    EXPECT_LE(told[0].since_ns, monotonic_ns());
  }
  EXPECT_TRUE(sleeping_threads(*directory, self).empty());
}

TEST_F(WaitingCallTest, TheLongestComesFirstAndWhatIsTooMuchIsLeftOut) {
  std::vector<std::unique_ptr<WaitingCall>> calls;
  for (std::uint32_t i = 0; i < layout::kCallLines + 3; ++i)
    calls.push_back(std::make_unique<WaitingCall>(*directory, self, ("call" + std::to_string(i)).c_str()));
  auto told = sleeping_threads(*directory, self);
  ASSERT_EQ(told.size(), layout::kCallLines);
  for (std::size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i].call, "call" + std::to_string(i));
  calls.erase(calls.begin());
  const WaitingCall next(*directory, self, "next");
  told = sleeping_threads(*directory, self);
  ASSERT_EQ(told.size(), layout::kCallLines);
  EXPECT_EQ(told.front().call, "call1");
  EXPECT_EQ(told.back().call, "next");
}

TEST_F(WaitingCallTest, WhatAPredecessorLeftIsNotTheSuccessors) {
  std::vector<std::unique_ptr<WaitingCall>> left;
  for (std::uint32_t i = 0; i < layout::kCallLines; ++i)
    left.push_back(std::make_unique<WaitingCall>(*directory, self, "left"));
  const ProcessRef next{self.index, self.generation + 1};
  EXPECT_TRUE(sleeping_threads(*directory, next).empty());
  const WaitingCall own(*directory, next, "own");
  const auto told = sleeping_threads(*directory, next);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].call, "own");
}

TEST_F(WaitingCallTest, WordsOfAProcessAreNotTrusted) {
  layout::CallLine& line = directory->calls_of(self.index)[0];
  line.claim.store(std::uint64_t{self.generation} << 32 | 7);
  line.since.store(5);
  for (auto& word : line.name) word.store(0x4141414141414141);  // no end
  auto told = sleeping_threads(*directory, self);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].call, std::string(layout::kCallNameBytes, 'A'));
  std::uint64_t word = 0;
  std::memcpy(&word, "ab\x1b[31m", 7);
  line.name[0].store(word);
  told = sleeping_threads(*directory, self);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].call, "ab");
  line.name[0].store(0);
  EXPECT_TRUE(sleeping_threads(*directory, self).empty());
  line.since.store(-1);
  EXPECT_TRUE(sleeping_threads(*directory, self).empty());
  EXPECT_TRUE(sleeping_threads(*directory, {HostDirectory::kMaxProcesses, 1}).empty());
}

TEST_F(WaitingCallTest, ALongNameIsCut) {
  const std::string name(100, 'x');
  const WaitingCall here(*directory, self, name.c_str());
  const auto told = sleeping_threads(*directory, self);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].call, name.substr(0, layout::kCallNameBytes));
}

}  // namespace
}  // namespace orrery::job
