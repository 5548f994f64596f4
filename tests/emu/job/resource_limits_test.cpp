// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/resource_limits.hpp"

#include "emu/job/host_directory.hpp"

#include <gtest/gtest.h>

namespace orrery::job {
namespace {

TEST(ResourceLimits, AreReadFromAList) {
  std::string why;
  const auto some = parse_limits("mdd=16,bte=0,cq=1000000", &why);
  ASSERT_TRUE(some.ok()) << why;
  EXPECT_EQ(some.value()[0], 16U);
  EXPECT_EQ(some.value()[1], 1'000'000U);
  EXPECT_EQ(some.value()[2], std::nullopt);
  EXPECT_EQ(some.value()[4], 0U);
  const auto none = parse_limits("", &why);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none.value(), ResourceLimits{});
}

TEST(ResourceLimits, WhatIsNotAcceptedIsNamed) {
  for (const char* text : {"mdd", "mdd=", "mdd=-1", "mdd=1x", "mdd=1000001", "gart=4", "=4", "mdd=1,", ",",
                           "mdd=1,,cq=2", "mdd=99999999999999999999"}) {
    std::string why;
    EXPECT_EQ(parse_limits(text, &why).code(), Errc::invalid_param) << text;
    EXPECT_NE(why.find("is not accepted: expected"), std::string::npos) << text;
  }
}

TEST(ResourceLimits, StandWithTheDomainInTheDirectory) {
  auto directory = HostDirectory::create({});
  ASSERT_TRUE(directory.ok());
  HostDirectory& d = *directory.value();
  const DomainId one = d.declare_domain(4, 1).value();
  const DomainId two = d.declare_domain(5, 2).value();
  EXPECT_EQ(d.limit_of(one, Resource::mdd), std::nullopt);
  d.set_limit(one, Resource::mdd, 0);
  d.set_limit(two, Resource::cq, 7);
  EXPECT_EQ(d.limit_of(one, Resource::mdd), 0U);
  EXPECT_EQ(d.limit_of(one, Resource::cq), std::nullopt);
  EXPECT_EQ(d.limit_of(two, Resource::cq), 7U);
  d.set_limit(one, Resource::mdd, std::nullopt);
  EXPECT_EQ(d.limit_of(one, Resource::mdd), std::nullopt);
  EXPECT_EQ(d.limit_of(9999, Resource::mdd), std::nullopt);

  EXPECT_EQ(d.claim_domain(one, 0), Errc::ok);
  EXPECT_EQ(d.claim_domain(one, 0), Errc::ok);
  EXPECT_EQ(d.claim_domain(one, 1), Errc::invalid_state);
  EXPECT_EQ(d.claim_domain(two + 1, 1), Errc::no_match);
  EXPECT_EQ(d.set_translation_size(one, 8), Errc::ok);
  EXPECT_EQ(d.set_translation_size(one, 8), Errc::ok);
  EXPECT_EQ(d.set_translation_size(one, 9), Errc::illegal_op);
  EXPECT_EQ(d.set_translation_size(two + 1, 9), Errc::no_match);
}

TEST(EndpointsAt, AreThoseOfADomainBehindAnAddress) {
  auto directory = HostDirectory::create({});
  ASSERT_TRUE(directory.ok());
  HostDirectory& d = *directory.value();
  const DomainId domain = d.declare_domain(4, 1).value();
  const ProcessRef self = d.join({}).value();
  const ProcessRef other = d.join({}).value();
  ASSERT_TRUE(d.publish_endpoint(self, {domain, 10, 1}, 100).ok());
  ASSERT_TRUE(d.publish_endpoint(other, {domain, 10, 2}, 200).ok());
  ASSERT_TRUE(d.publish_endpoint(self, {domain, 11, 3}, 300).ok());
  ASSERT_TRUE(d.publish_endpoint(self, {domain + 1, 10, 4}, 400).ok());
  const auto withdrawn = d.publish_endpoint(self, {domain, 10, 5}, 500);
  ASSERT_TRUE(withdrawn.ok());
  EXPECT_EQ(d.endpoints_at(domain, 10).size(), 3U);
  d.withdraw_endpoint(withdrawn.value());
  EXPECT_EQ(d.endpoints_at(domain, 10).size(), 2U);
  d.mark_dead(other);
  const auto left = d.endpoints_at(domain, 10);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].key.instance, 1U);
  EXPECT_EQ(left[0].nic_index, 100U);
  EXPECT_EQ(left[0].process, self);
}

}  // namespace
}  // namespace orrery::job
