// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What a job of six PEs on three pretended nodes learns about itself from the libraries beside uGNI.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <alps/alps_toolAssist.h>
#include <alps/libalpslli.h>
#include <pmi.h>
#include <rca_lib.h>
#include <wlm_detect.h>

namespace {

struct Pmi {
  int rank = 0;
  int size = 0;
  Pmi() {
    int spawned = 0;
    EXPECT_EQ(PMI_Init(&spawned), PMI_SUCCESS);
    PMI_Get_rank(&rank);
    PMI_Get_size(&size);
  }
  int nid(int pe) const {
    int nid = -1;
    EXPECT_EQ(PMI_Get_nid(pe, &nid), PMI_SUCCESS);
    return nid;
  }
};
const Pmi& pmi() {
  static const Pmi one;
  return one;
}

std::vector<std::byte> ask(int request, int expected = ALPS_APP_LLI_ALPS_STAT_OK) {
  int status = -7;
  std::size_t count = 0;
  EXPECT_EQ(alps_app_lli_lock(), 0);
  EXPECT_EQ(alps_app_lli_put_request(request, nullptr, 0), 0);
  EXPECT_EQ(alps_app_lli_get_response(&status, &count), 0);
  EXPECT_EQ(status, expected);
  std::vector<std::byte> answer(count);
  if (count != 0) {
    EXPECT_EQ(alps_app_lli_get_response_bytes(answer.data(), count), 0);
  }
  EXPECT_NE(alps_app_lli_get_response_bytes(&status, 1), 0) << "nothing is left";
  EXPECT_EQ(alps_app_lli_unlock(), 0);
  return answer;
}

std::uint64_t apid() {
  const auto answer = ask(ALPS_APP_LLI_ALPS_REQ_APID);
  std::uint64_t id = 0;
  EXPECT_EQ(answer.size(), sizeof id);
  std::memcpy(&id, answer.data(), std::min(answer.size(), sizeof id));
  return id;
}

TEST(Alps, TheLineTellsTheDomainsOfTheJob) {
  (void)pmi();
  EXPECT_NE(apid(), 0U);
  const auto answer = ask(ALPS_APP_LLI_ALPS_REQ_GNI);
  ASSERT_GE(answer.size(), sizeof(alpsAppLLIGni_t));
  std::uint64_t count = 0;
  std::memcpy(&count, answer.data(), sizeof count);
  EXPECT_EQ(count, 2U) << "as many as the lists of PMI have";
  ASSERT_GE(answer.size(), sizeof count + count * sizeof(alpsAppGni_t));
  alpsAppGni_t first;
  std::memcpy(&first, answer.data() + offsetof(alpsAppLLIGni_t, u), sizeof first);
  EXPECT_EQ(first.device_id, 0);
  EXPECT_EQ(first.ptag, std::atoi(std::getenv("PMI_GNI_PTAG")));
  EXPECT_EQ(first.cookie, std::strtoul(std::getenv("PMI_GNI_COOKIE"), nullptr, 10));
  EXPECT_EQ(first.local_addr, std::strtoul(std::getenv("PMI_GNI_LOC_ADDR"), nullptr, 10));
  EXPECT_TRUE(ask(ALPS_APP_LLI_ALPS_REQ_START).empty());
  EXPECT_TRUE(ask(ALPS_APP_LLI_ALPS_REQ_EXITING).empty());
  EXPECT_TRUE(ask(77, ALPS_APP_LLI_ALPS_STAT_ERROR).empty());
}

TEST(Alps, BadArgumentsAreRefused) {
  int status = 0;
  std::size_t count = 0;
  EXPECT_NE(alps_app_lli_get_response(&status, &count), 0) << "nothing was asked";
  EXPECT_NE(alps_app_lli_put_request(ALPS_APP_LLI_ALPS_REQ_APID, nullptr, 8), 0);
  EXPECT_EQ(alps_app_lli_put_request(ALPS_APP_LLI_ALPS_REQ_APID, nullptr, 0), 0);
  EXPECT_NE(alps_app_lli_get_response(nullptr, &count), 0);
  EXPECT_NE(alps_app_lli_get_response(&status, nullptr), 0);
  EXPECT_NE(alps_app_lli_get_response_bytes(nullptr, 8), 0);
  char many[64];
  EXPECT_NE(alps_app_lli_get_response_bytes(many, sizeof many), 0);
  int pipes[2] = {5, 5};
  EXPECT_NE(alps_app_lli_pipes(nullptr, pipes), 0);
  int more[2] = {5, 5};
  EXPECT_EQ(alps_app_lli_pipes(pipes, more), 0);
  EXPECT_EQ(pipes[0] & pipes[1] & more[0] & more[1], -1);
}

TEST(Alps, ThePlacementIsTheJobs) {
  alpsAppLayout_t layout{};
  int* nids = nullptr;
  int* target_nids = nullptr;
  int* first = nullptr;
  int* total = nullptr;
  in_addr* ips = nullptr;
  ASSERT_EQ(alps_get_placement_info(apid(), &layout, &nids, &target_nids, nullptr, nullptr, &ips, &first,
                                    &total, nullptr, nullptr),
            1);
  EXPECT_EQ(layout.numPes, pmi().size);
  ASSERT_EQ(layout.numNodes, 3);
  EXPECT_EQ(layout.numPesHere, 2);
  EXPECT_EQ(layout.firstPe, pmi().rank / 2 * 2);
  for (int pe = 0; pe < pmi().size; ++pe) EXPECT_EQ(nids[pe], pmi().nid(pe));
  EXPECT_EQ(layout.numCmds, 1);
  EXPECT_EQ(first[0], 0);
  EXPECT_EQ(total[0], pmi().size);
  for (int node = 0; node < 3; ++node) {
    EXPECT_EQ(target_nids[node], pmi().nid(2 * node));
  }
  for (void* list : {static_cast<void*>(nids), static_cast<void*>(target_nids), static_cast<void*>(first),
                     static_cast<void*>(total), static_cast<void*>(ips)})
    std::free(list);
  int* untouched = nids = reinterpret_cast<int*>(7);
  EXPECT_LT(alps_get_placement_info(apid() + 1, &layout, &nids, nullptr, nullptr, nullptr, nullptr, nullptr,
                                    nullptr, nullptr, nullptr),
            0);
  EXPECT_EQ(nids, untouched);
}

TEST(Rca, KnowsTheNodes) {
  rs_node_t node{};
  ASSERT_EQ(rca_get_nodeid(&node), 0);
  EXPECT_EQ(static_cast<int>(node.rs_node_s._node_id), pmi().nid(pmi().rank));
  rs_node_array_t nodes{};
  ASSERT_EQ(rca_get_sysnodes(&nodes), 0);
  ASSERT_EQ(nodes.na_len, 3);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(static_cast<int>(nodes.na_ids[i].rs_node_s._node_id), pmi().nid(2 * i));
  std::free(nodes.na_ids);
  EXPECT_EQ(rca_get_nodeid(nullptr), -1);
  EXPECT_EQ(rca_get_sysnodes(nullptr), -1);
}

TEST(Rca, KnowsWhereTheNodesAre) {
  // Without a machine: Aries' layout, four nodes a slot, 16 slots a chassis, six chassis a group.
  rca_mesh_coord_t at{};
  for (const auto& [nid, x, y, z] : {std::array{0, 0, 0, 0},
                                     {3, 0, 0, 0},
                                     {4, 0, 0, 1},
                                     {64, 0, 1, 0},
                                     {383, 0, 5, 15},
                                     {384, 1, 0, 0},
                                     {65535, 170, 3, 15}}) {
    ASSERT_EQ(rca_get_meshcoord(static_cast<std::uint16_t>(nid), &at), 0) << nid;
    EXPECT_EQ(at.mesh_x, x) << nid;
    EXPECT_EQ(at.mesh_y, y) << nid;
    EXPECT_EQ(at.mesh_z, z) << nid;
  }
  ASSERT_EQ(rca_get_max_dimension(&at), 0);
  EXPECT_EQ(at.mesh_y, 5);
  EXPECT_EQ(at.mesh_z, 15);
  EXPECT_EQ(rca_get_meshcoord(0, nullptr), -1);
  EXPECT_EQ(rca_get_max_dimension(nullptr), -1);
}

TEST(WlmDetect, NamesTheManager) {
  for (char* name : {wlm_detect_get_active(), wlm_detect_get_default()}) {
    ASSERT_NE(name, nullptr);
    EXPECT_EQ(std::string(name), "ALPS");
    std::free(name);
  }
}

}  // namespace
