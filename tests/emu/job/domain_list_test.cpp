// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/domain_list.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace orrery::job {
namespace {

TEST(DomainList, PairsTagsWithCookies) {
  const auto domains = parse_domain_list("12:13", "4000000000:5");
  ASSERT_EQ(domains.size(), 2u);
  EXPECT_EQ(domains[0].ptag, 12);
  EXPECT_EQ(domains[0].cookie, 4000000000u);
  EXPECT_EQ(domains[1].ptag, 13);
  EXPECT_EQ(domains[1].cookie, 5u);
}

TEST(DomainList, TakesWhatIsThereAndNothingElse) {
  EXPECT_TRUE(parse_domain_list(nullptr, nullptr).empty());
  EXPECT_TRUE(parse_domain_list("12", nullptr).empty());
  EXPECT_TRUE(parse_domain_list("", "").empty());
  EXPECT_TRUE(parse_domain_list("256", "1").empty());
  EXPECT_TRUE(parse_domain_list("-1", "1").empty());
  EXPECT_EQ(parse_domain_list("12", "1:2").size(), 1u);  // strtok() has cut the first list
  EXPECT_EQ(parse_domain_list("12:x:13", "1:2:3").size(), 1u);
}

TEST(DomainList, MadeDomainsAreTwoNeighboursThatSurviveAtoi) {
  for (int i = 0; i < 1000; ++i) {
    const auto domains = make_domains();
    ASSERT_EQ(domains.size(), 2u);
    EXPECT_EQ(domains[1].ptag, domains[0].ptag + 1);
    EXPECT_EQ(domains[1].cookie, domains[0].cookie + 1);
    const auto variables = domain_variables(domains, 7);
    EXPECT_EQ(std::atoi(variables.cookie.c_str()), static_cast<int>(domains[0].cookie));
    const auto parsed = parse_domain_list(variables.ptag.c_str(), variables.cookie.c_str());
    ASSERT_EQ(parsed.size(), 2u);
    EXPECT_EQ(parsed[1].cookie, domains[1].cookie);
    EXPECT_EQ(variables.dev_id, "0:0");
    EXPECT_EQ(variables.loc_addr, "7:7");
  }
}

TEST(DomainList, FirstTagGoesWithTheNextCookieToo) {
  auto directory = std::move(HostDirectory::create({})).value();
  const std::vector<HostDirectory::Domain> domains{{20, 100}, {21, 101}};
  ASSERT_TRUE(declare_domains(*directory, domains).ok());
  EXPECT_EQ(directory->find_domain(20, 100).value(), 0u);
  EXPECT_EQ(directory->find_domain(21, 101).value(), 1u);
  EXPECT_TRUE(directory->find_domain(20, 101).ok());
  EXPECT_EQ(directory->find_ptag(101).value(), 21);
  EXPECT_EQ(directory->find_domain(21, 100).code(), Errc::permission);
}

// Each to what it was given, or to the last of the list.
TEST(DomainList, ClientsMayAddToACookie) {
  auto directory = std::move(HostDirectory::create({})).value();
  const std::vector<HostDirectory::Domain> domains{{20, 100}, {21, 101}};
  for (int process = 0; process < 2; ++process) {
    ASSERT_TRUE(declare_domains(*directory, domains).ok());
    for (const std::uint8_t ptag : {20, 21}) {
      for (const std::uint32_t cookie : {102u, 103u}) {
        EXPECT_TRUE(directory->find_domain(ptag, cookie).ok()) << cookie;
      }
      EXPECT_EQ(directory->find_domain(ptag, 104).code(), Errc::permission);
    }
    EXPECT_EQ(directory->find_domain(22, 102).code(), Errc::permission);
    EXPECT_EQ(directory->domains().size(), 7u);
  }
  auto other = std::move(HostDirectory::create({})).value();
  ASSERT_TRUE(declare_domains(*other, {{17, UINT32_MAX - 1}}).ok());
  EXPECT_TRUE(other->find_domain(17, UINT32_MAX).ok());
  EXPECT_EQ(other->domains().size(), 2u);
}

}  // namespace
}  // namespace orrery::job
