// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/interfaces.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace orrery::wire {
namespace {

using ::testing::HasSubstr;

const std::vector<InterfaceAddress> kHere{{"lo", "127.0.0.1"},     {"eth0", "192.168.7.20"},
                                          {"ib0", "10.77.130.2"},  {"lo", "::1"},
                                          {"eth0", "fe80::1:2:3"}, {"eth0", "fd00:77::1"}};

// "name" or "address", or what is wrong.
std::string chosen(const std::string& text) {
  std::string why;
  const auto choice = choose_interface(text, kHere, &why);
  if (!choice.ok()) return "refused: " + why;
  if (!choice.value().address.empty()) return "address " + choice.value().address;
  return choice.value().interface.empty() ? "any" : "name " + choice.value().interface;
}

TEST(Interfaces, ANameAnAddressOrANetworkPicksOne) {
  EXPECT_EQ(chosen(""), "any");
  EXPECT_EQ(chosen("eth0"), "name eth0");
  EXPECT_EQ(chosen("eth9"), "name eth9");  // the provider knows its own
  EXPECT_EQ(chosen("10.77.130.2"), "address 10.77.130.2");
  EXPECT_EQ(chosen("fd00:0077::1"), "address fd00:77::1");
  EXPECT_EQ(chosen("127.0.0.1"), "address 127.0.0.1");
  EXPECT_EQ(chosen("127.1.2.3"), "address 127.1.2.3");
  EXPECT_EQ(chosen("fe80::1:2:3%eth0"), "name fe80::1:2:3%eth0");
  EXPECT_EQ(chosen("10.77.128.0/17"), "address 10.77.130.2");
  EXPECT_EQ(chosen("10.77.130.2/32"), "address 10.77.130.2");
  EXPECT_EQ(chosen("192.168.7.77/24"), "address 192.168.7.20");
  EXPECT_EQ(chosen("fd00::/16"), "address fd00:77::1");
}

TEST(Interfaces, WhatThisHostDoesNotHaveIsRefusedWithWhatItHas) {
  EXPECT_THAT(chosen("10.77.130.1"),
              HasSubstr("10.77.130.1 is no address of this host; it has: lo 127.0.0.1, "
                        "eth0 192.168.7.20"));
  EXPECT_THAT(chosen("10.77.0.0/17"), HasSubstr("this host has no address in 10.77.0.0/17; it has: lo"));
  EXPECT_THAT(chosen("fd00:78::/32"), HasSubstr("no address in fd00:78::/32"));
  for (const char* const bad : {"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/8x", "10.0.0.0/-1"})
    EXPECT_THAT(chosen(bad), HasSubstr("is no network: expected 0..32 bits behind the slash")) << bad;
  EXPECT_THAT(chosen("fd00::/129"), HasSubstr("expected 0..128 bits"));
}

TEST(Interfaces, TheLoopbackOfThisHostIsAmongItsAddresses) {
  bool found = false;
  for (const InterfaceAddress& one : addresses_of_host()) found = found || one.interface == "lo";
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace orrery::wire
