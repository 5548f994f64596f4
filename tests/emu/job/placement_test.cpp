// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint32_t> nids(const Placement& placement) {
  std::vector<std::uint32_t> all;
  for (const PePlace& pe : placement.pes()) all.push_back(pe.nid);
  return all;
}

TEST(Placement, BlocksAreAsEvenAsPossibleAndInOrder) {
  std::string why;
  EXPECT_THAT(nids(Placement::blocks(5, 2, &why).value()), ElementsAre(1, 1, 1, 2, 2));
  EXPECT_THAT(nids(Placement::blocks(4, 4, &why, 10).value()), ElementsAre(10, 11, 12, 13));
  EXPECT_THAT(nids(Placement::blocks(3, 1, &why).value()), ElementsAre(1, 1, 1));
}

TEST(Placement, BlocksRefuseImpossibleNumbersAndNameThem) {
  std::string why;
  EXPECT_EQ(Placement::blocks(0, 1, &why).code(), Errc::invalid_param);
  EXPECT_THAT(why, HasSubstr("0 PEs: expected 1..1024"));
  EXPECT_EQ(Placement::blocks(1025, 1, &why).code(), Errc::invalid_param);
  EXPECT_EQ(Placement::blocks(2, 3, &why).code(), Errc::invalid_param);
  EXPECT_THAT(why, HasSubstr("3 nodes: expected 1..2"));
  EXPECT_EQ(Placement::blocks(2, 0, &why).code(), Errc::invalid_param);
}

TEST(Placement, FileGivesNidsAddressesAndCliques) {
  std::string why;
  const auto placement = Placement::parse(
      "# two nodes\n"
      "node 5 pes 0-1,3\n"
      "\n"
      "\tnode 7 nic 0x12 pes 2  # alone\r\n",
      4, &why);
  ASSERT_TRUE(placement.ok()) << why;
  EXPECT_THAT(nids(placement.value()), ElementsAre(5, 5, 7, 5));
  EXPECT_EQ(placement.value().nic_address(0), 5u);
  EXPECT_EQ(placement.value().nic_address(2), 0x12u);
  EXPECT_EQ(placement.value().node_count(), 2u);
  EXPECT_THAT(placement.value().clique_of(3), ElementsAre(0, 1, 3));
  EXPECT_THAT(placement.value().clique_of(2), ElementsAre(2));
}

struct BadFile {
  const char* name;
  const char* text;
  const char* said;
};
class PlacementBadFile : public ::testing::TestWithParam<BadFile> {};

TEST_P(PlacementBadFile, IsRefusedWithLineValueAndWhatIsAccepted) {
  std::string why;
  EXPECT_EQ(Placement::parse(GetParam().text, 4, &why).code(), Errc::invalid_param);
  EXPECT_THAT(why, HasSubstr(GetParam().said));
  EXPECT_EQ(why.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Table, PlacementBadFile,
    ::testing::Values(
        BadFile{"Empty", "", "PE 0 has no node: expected each of PEs 0..3"},
        BadFile{"Keyword", "nodes 1 pes 0-3", "line 1: 'nodes' is not accepted: expected 'node NUMBER'"},
        BadFile{"NoNid", "node", "node number '': expected 0..262143"},
        BadFile{"BigNid", "node 262144 pes 0-3", "node number '262144'"},
        BadFile{"NegativeNid", "node -1 pes 0-3", "node number '-1'"},
        BadFile{"BadNic", "node 1 nic 0x40000 pes 0-3", "NIC address '0x40000': expected 0..0x3ffff"},
        BadFile{"NoPes", "node 1 0-3", "'0-3' is not accepted: expected 'pes LIST'"},
        BadFile{"EmptyList", "node 1 pes", "no PEs given: expected a list such as 0-3"},
        BadFile{"TooHigh", "node 1 pes 0-4", "PEs '0-4': expected a PE or a range FIRST-LAST within 0..3"},
        BadFile{"Backwards", "node 1 pes 3-0", "PEs '3-0'"}, BadFile{"Comma", "node 1 pes 0-3,", "comma"},
        BadFile{"Empty item", "node 1 pes 0,,1-3", "PEs ''"},
        BadFile{"Twice", "node 1 pes 0-3\nnode 2 pes 3", "line 2: PE 3 has a node already"},
        BadFile{"Missing", "node 1 pes 0-2", "PE 3 has no node"},
        BadFile{"SameNode", "node 1 pes 0\nnode 1 pes 1-3", "node 1 stands in an earlier line"},
        BadFile{"SameNic", "node 1 pes 0\nnode 2 nic 1 pes 1-3", "NIC address 0x1 is that of node 1"},
        BadFile{"Rest", "node 1 pes 0-3 please", "'please' is not accepted: expected the end of the line"},
        BadFile{"Binary", "node \x01\xff pes 0-3", "node number '?\?'"}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::erase(name, ' ');
      return name;
    });

TEST(Placement, ProcessMappingSurvivesARoundTrip) {
  std::string why;
  for (const auto& [pes, nodes] : {std::pair{4u, 2u}, {5u, 2u}, {7u, 3u}, {1u, 1u}, {64u, 64u}}) {
    const Placement placement = Placement::blocks(pes, nodes, &why).value();
    const auto again = Placement::from_process_mapping(placement.process_mapping(), pes);
    ASSERT_TRUE(again.ok()) << placement.process_mapping();
    EXPECT_EQ(nids(again.value()), nids(placement)) << placement.process_mapping();
  }
  EXPECT_EQ(Placement::blocks(4, 2, &why).value().process_mapping(), "(vector,(0,2,2))");
}

TEST(Placement, ProcessMappingOfScatteredPesKeepsTheirNodes) {
  std::string why;
  const Placement placement = Placement::parse("node 1 pes 0,2,3\nnode 2 pes 1,4", 5, &why).value();
  const auto again = Placement::from_process_mapping(placement.process_mapping(), 5);
  ASSERT_TRUE(again.ok()) << placement.process_mapping();
  EXPECT_EQ(nids(again.value()), nids(placement)) << placement.process_mapping();
}

TEST(Placement, ProcessMappingRepeatsItsBlocks) {
  const auto placement = Placement::from_process_mapping("(vector,(0,2,1))", 5, 0);
  ASSERT_TRUE(placement.ok());
  EXPECT_THAT(nids(placement.value()), ElementsAre(0, 1, 0, 1, 0));
}

TEST(Placement, MalformedProcessMappingsAreCorrupt) {
  for (const char* text : {"", "(vector)", "(vector,)", "(vector,())", "(vector,(0,2))", "(vector,(0,0,2))",
                           "(vector,(0,2,0))", "(vector,(a,2,2))", "(matrix,(0,2,2))", "(vector,(0,2,2)",
                           "(vector,(0,2,2)(", "(vector,(0,9999999999,2))", "(vector,(0,2,2,2))"}) {
    EXPECT_EQ(Placement::from_process_mapping(text, 4).code(), Errc::corrupt) << text;
  }
}

}  // namespace
}  // namespace orrery::job
