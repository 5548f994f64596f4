// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The collective engine as a client sees it, over all PEs of the job, and every call of it with arguments
// that no client should pass.
#include "tests/lib/gni/client.hpp"

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using client::address_of;
using client::descriptor;
using client::Pmi;

struct Card {
  std::uint32_t address;
  std::uint32_t engine;
};

// One engine at PE 0 with every PE below it.
class Collective : public testing::Test {
 protected:
  explicit Collective(std::uint32_t modes = GNI_CE_MODE_ROUND_NEAR) {
    queue = domain.queue(64, GNI_CQ_BLOCKING);
    Card mine{domain.address, 0};
    if (pmi.rank == 0) {
      REQUIRE_SUCCESS(GNI_CeCreate(domain.nic, &engine));
      REQUIRE_SUCCESS(GNI_CeGetId(engine, &mine.engine));
    }
    cards = pmi.gather(mine);
    if (pmi.rank == 0) {
      engine_queue = domain.queue(64, GNI_CQ_BLOCKING);
      std::vector<gni_ep_handle_t> children;
      for (int i = 0; i < pmi.size; ++i) {
        children.push_back(domain.endpoint(queue, cards[static_cast<std::size_t>(i)].address,
                                           static_cast<std::uint32_t>(i)));
        REQUIRE_SUCCESS(
            GNI_EpSetCeAttr(children.back(), UINT32_MAX, static_cast<std::uint32_t>(i), GNI_CE_CHILD_PE));
      }
      REQUIRE_SUCCESS(GNI_CeConfigure(engine, children.data(), static_cast<std::uint32_t>(pmi.size), nullptr,
                                      engine_queue, modes));
    }
    up = domain.endpoint(queue, cards[0].address, 0);
    REQUIRE_SUCCESS(
        GNI_EpSetCeAttr(up, cards[0].engine, static_cast<std::uint32_t>(pmi.rank), GNI_CE_CHILD_PE));
    memory = domain.memory(results.data(), sizeof results);
    pmi.barrier();
  }
  ~Collective() override { pmi.barrier(); }

  gni_post_descriptor_t join(gni_ce_cmd_type_t command, std::uint64_t id, std::uint64_t first,
                             std::uint64_t second, std::size_t which = 0) {
    gni_post_descriptor_t d = descriptor(GNI_POST_CE, GNI_CQMODE_SILENT);
    d.local_addr = address_of(&results[which]);
    d.local_mem_hndl = memory;
    d.ce_cmd = command;
    d.ce_mode = GNI_CEMODE_TWO_OP;
    d.ce_red_id = id;
    d.first_operand = first;
    d.second_operand = second;
    return d;
  }
  gni_return_t result(std::size_t which = 0) {
    const std::time_t give_up = std::time(nullptr) + 60;
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_CeCheckResult(&results[which], 1)) == GNI_RC_NOT_DONE && std::time(nullptr) < give_up) {
      timespec moment{0, 20'000};
      nanosleep(&moment, nullptr);
    }
    return rc;
  }

  const Pmi& pmi = Pmi::get();
  client::Domain domain{GNI_CDM_MODE_ERR_NO_KILL};
  gni_cq_handle_t queue = nullptr;
  gni_cq_handle_t engine_queue = nullptr;
  gni_ce_handle_t engine = nullptr;
  gni_ep_handle_t up = nullptr;
  std::vector<Card> cards;
  std::array<gni_ce_result_t, 16> results{};
  gni_mem_handle_t memory{};
};

class CollectiveWithEvents : public Collective {
 protected:
  CollectiveWithEvents() : Collective(GNI_CE_MODE_CQE_ONCOMP | GNI_CE_MODE_CQE_ONERR) {}
};

TEST_F(Collective, EverybodyGetsTheSumAndAnEventForTheContribution) {
  for (std::uint64_t round = 0; round < 200; ++round) {
    gni_post_descriptor_t d = join(GNI_FMA_CE_IADD, 1234, round + static_cast<std::uint64_t>(pmi.rank), 1);
    d.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
    ASSERT_EQ(GNI_PostFma(up, &d), GNI_RC_SUCCESS);
    gni_cq_entry_t event = 0;
    ASSERT_EQ(GNI_CqWaitEvent(queue, 60'000, &event), GNI_RC_SUCCESS);
    gni_post_descriptor_t* done = nullptr;
    ASSERT_EQ(GNI_GetCompleted(queue, event, &done), GNI_RC_SUCCESS);
    ASSERT_EQ(done, &d);
    ASSERT_EQ(result(), GNI_RC_SUCCESS);
    const auto n = static_cast<std::uint64_t>(pmi.size);
    ASSERT_EQ(results[0].result1, round * n + n * (n - 1) / 2);
    ASSERT_EQ(results[0].result2, n);
    ASSERT_EQ(GNI_CE_RES_GET_RED_ID(&results[0]), 1234U);
    ASSERT_TRUE(GNI_CE_RES_STATUS_OK(&results[0]));
    ASSERT_EQ(GNI_CE_RES_GET_FPE(&results[0]), 0U);
  }
}

TEST_F(Collective, SixteenReductionsAreUnderWayAtOnceAndAreLookedAtTogether) {
  for (std::size_t i = 0; i < 16; ++i) {
    const std::size_t id = pmi.rank % 2 == 0 ? i : 15 - i;  // some in the opposite order
    gni_post_descriptor_t d = join(GNI_FMA_CE_OR, 160 + id, 1ull << id, 1ull << pmi.rank, id);
    ASSERT_EQ(GNI_PostFma(up, &d), GNI_RC_SUCCESS);
  }
  for (std::size_t i = 0; i < 16; ++i) ASSERT_EQ(result(i), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CeCheckResult(results.data(), 16), GNI_RC_SUCCESS);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(results[i].result1, 1ull << i);
    EXPECT_EQ(results[i].result2, (1ull << pmi.size) - 1);
  }
}

TEST_F(Collective, AnExceptionThatWasAskedForIsAFailureWithAResult) {
  const double big = 1e300;
  const double small = 1e-300;
  std::uint64_t operand = 0;
  std::memcpy(&operand, pmi.rank == 0 ? &big : &small, sizeof operand);
  gni_post_descriptor_t d = join(GNI_FMA_CE_FPADD, 1, operand, 0);
  ASSERT_EQ(GNI_PostFma(up, &d), GNI_RC_SUCCESS);
  ASSERT_EQ(result(), GNI_RC_SUCCESS) << "not asked for";
  pmi.barrier();
  d.ce_mode |= GNI_CEMODE_FPE_PRECISION;
  ASSERT_EQ(GNI_PostFma(up, &d), GNI_RC_SUCCESS);
  const bool alone = pmi.size == 1;
  ASSERT_EQ(result(), alone ? GNI_RC_SUCCESS : GNI_RC_TRANSACTION_ERROR);
  EXPECT_EQ(GNI_CE_RES_GET_FPE(&results[0]), alone ? 0U : static_cast<unsigned>(GNI_CE_FPE_PRECISION));
  EXPECT_TRUE(GNI_CE_RES_STATUS_OK(&results[0]));
  double sum = 0;
  std::memcpy(&sum, &results[0].result1, sizeof sum);
  EXPECT_EQ(sum, big);
}

TEST_F(CollectiveWithEvents, TheEnginesQueueHearsOfWhatIsCompleteAndOfWhatFailed) {
  for (std::uint64_t id = 5; id < 9; ++id) {
    const bool fails = id == 8 && pmi.size > 1;
    gni_post_descriptor_t d = join(fails && pmi.rank == 0 ? GNI_FMA_CE_XOR : GNI_FMA_CE_AND, id, 3, 3);
    ASSERT_EQ(GNI_PostFma(up, &d), GNI_RC_SUCCESS);
    ASSERT_EQ(result(), fails ? GNI_RC_TRANSACTION_ERROR : GNI_RC_SUCCESS);
    if (pmi.rank != 0) continue;
    gni_cq_entry_t event = 0;
    ASSERT_EQ(GNI_CqWaitEvent(engine_queue, 60'000, &event),
              fails ? GNI_RC_TRANSACTION_ERROR : GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_CQ_GET_REDUCTN_ID(event), id);
    EXPECT_EQ(GNI_CQ_GET_CE_ID(event), cards[0].engine);
    EXPECT_EQ(GNI_CQ_GET_STATUS(event), GNI_CE_RES_GET_STATUS(&results[0]));
    char text[256];
    ASSERT_EQ(GNI_CqErrorStr(event, text, sizeof text), GNI_RC_SUCCESS);
    EXPECT_EQ(std::string(text).find("CE_JOIN_INCONSISTENT") != std::string::npos, fails) << text;
    EXPECT_EQ(GNI_CqGetEvent(engine_queue, &event), GNI_RC_NOT_DONE);
  }
}

// A parent names its children on endpoints of its own, with whatever number: the places stay free for those
// that join.
TEST_F(Collective, NamingAChildClaimsNothing) {
  const auto instances = pmi.gather(domain.instance);
  gni_ce_handle_t second = nullptr;
  Card mine{domain.address, 0};
  if (pmi.rank == 0) {
    REQUIRE_SUCCESS(GNI_CeCreate(domain.nic, &second));
    REQUIRE_SUCCESS(GNI_CeGetId(second, &mine.engine));
  }
  const auto all = pmi.gather(mine);
  const auto self = static_cast<std::uint32_t>(pmi.rank);
  if (pmi.rank == 0) {
    std::vector<gni_ep_handle_t> children;
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(pmi.size); ++i) {
      children.push_back(domain.endpoint(queue, all[i].address, instances[i]));
      for (const std::uint32_t number : {std::uint32_t{0}, UINT32_MAX, all[0].engine})
        REQUIRE_SUCCESS(GNI_EpSetCeAttr(children.back(), number, i, GNI_CE_CHILD_PE));
    }
    REQUIRE_SUCCESS(GNI_CeConfigure(second, children.data(), static_cast<std::uint32_t>(pmi.size), nullptr,
                                    nullptr, GNI_CE_MODE_ROUND_NEAR));
  } else {
    // Nor does it at a PE that owns no engine, for a PE beside the engine's owner.
    const std::uint32_t named = self == 1 ? 2u % static_cast<std::uint32_t>(pmi.size) : 1;
    const gni_ep_handle_t other = domain.endpoint(queue, all[named].address, instances[named]);
    REQUIRE_SUCCESS(GNI_EpSetCeAttr(other, all[0].engine, named, GNI_CE_CHILD_PE));
  }
  pmi.barrier();
  const gni_ep_handle_t leaf = domain.endpoint(queue, all[0].address, instances[0]);
  REQUIRE_SUCCESS(GNI_EpSetCeAttr(leaf, all[0].engine, self, GNI_CE_CHILD_PE));
  pmi.barrier();
  gni_post_descriptor_t d = join(GNI_FMA_CE_IADD, 1, self + 1, 0);
  d.ce_mode = 0;
  ASSERT_EQ(GNI_PostFma(leaf, &d), GNI_RC_SUCCESS);
  ASSERT_EQ(result(), GNI_RC_SUCCESS) << GNI_CE_RES_GET_STATUS(&results[0]);
  const auto n = static_cast<std::uint64_t>(pmi.size);
  EXPECT_EQ(results[0].result1, n * (n + 1) / 2);
  EXPECT_EQ(GNI_CeCheckResult(results.data(), 0), GNI_RC_SUCCESS);
  pmi.barrier();
  // A second PE in a place that is taken hears so by name; between hosts its result alone says it.
  if (pmi.rank == 1 && client::memory_is_shared()) {
    const gni_ep_handle_t wrong = domain.endpoint(queue, all[0].address, instances[0]);
    REQUIRE_SUCCESS(GNI_EpSetCeAttr(wrong, all[0].engine, 0, GNI_CE_CHILD_PE));
    gni_post_descriptor_t e = join(GNI_FMA_CE_IADD, 2, 1, 0);
    e.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
    ASSERT_EQ(GNI_PostFma(wrong, &e), GNI_RC_SUCCESS);
    gni_cq_entry_t event = 0;
    EXPECT_EQ(client::next_event(queue, &event), GNI_RC_TRANSACTION_ERROR);
    char text[256];
    ASSERT_EQ(GNI_CqErrorStr(event, text, sizeof text), GNI_RC_SUCCESS);
    EXPECT_NE(std::string(text).find("CE_JOIN_DUPLICATE"), std::string::npos) << text;
  }
  pmi.barrier();
  if (pmi.rank == 0) {
    EXPECT_EQ(GNI_CeDestroy(second), GNI_RC_SUCCESS);
  }
}

TEST_F(Collective, ArgumentsThatNobodyShouldPassAreRefused) {
  std::uint32_t id = 77;
  gni_ce_handle_t ce = nullptr;
  for (const std::uint64_t bits : {0ull, 1ull, 0xdeadbeefcafef00dull, ~0ull}) {
    EXPECT_EQ(GNI_CeCreate(reinterpret_cast<gni_nic_handle_t>(bits), &ce), GNI_RC_INVALID_PARAM);
    const auto bad = reinterpret_cast<gni_ce_handle_t>(bits);
    EXPECT_EQ(GNI_CeGetId(bad, &id), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_CeDestroy(bad), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_CeConfigure(bad, &up, 1, nullptr, nullptr, 0), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_EpSetCeAttr(reinterpret_cast<gni_ep_handle_t>(bits), 0, 0, GNI_CE_CHILD_PE),
              GNI_RC_INVALID_PARAM);
  }
  EXPECT_EQ(id, 77U);
  EXPECT_EQ(GNI_CeCreate(domain.nic, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CeCheckResult(nullptr, 1), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CeCheckResult(results.data(), 0), GNI_CeCheckResult(results.data(), 1)) << "0 is one";
  gni_ce_result_t never{~0ull >> 1, 0, 0};
  EXPECT_EQ(GNI_CeCheckResult(&never, 1), GNI_RC_NOT_DONE) << "any bits but a result";
  EXPECT_EQ(gni_ce_res_get_status(nullptr), 0U);
  EXPECT_EQ(gni_ce_res_status_ok(nullptr), 0U);
  EXPECT_EQ(gni_ce_res_get_fpe(nullptr), 0U);
  EXPECT_EQ(gni_ce_res_get_red_id(nullptr), 0U);

  EXPECT_EQ(GNI_EpSetCeAttr(up, 0, GNI_CE_MAX_CHILDREN, GNI_CE_CHILD_PE), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpSetCeAttr(up, 0, 0, static_cast<gni_ce_child_t>(3)), GNI_RC_INVALID_PARAM);
  gni_ep_handle_t unbound = nullptr;
  REQUIRE_SUCCESS(GNI_EpCreate(domain.nic, queue, &unbound));
  EXPECT_EQ(GNI_EpSetCeAttr(unbound, 0, 0, GNI_CE_CHILD_PE), GNI_RC_INVALID_STATE);

  REQUIRE_SUCCESS(GNI_CeCreate(domain.nic, &ce));
  EXPECT_EQ(GNI_CeGetId(ce, nullptr), GNI_RC_INVALID_PARAM);
  std::array<gni_ep_handle_t, 33> eps{};
  eps.fill(up);
  EXPECT_EQ(GNI_CeConfigure(ce, nullptr, 1, nullptr, nullptr, 0), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CeConfigure(ce, eps.data(), 0, nullptr, nullptr, 0), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CeConfigure(ce, eps.data(), 33, nullptr, nullptr, 0), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CeConfigure(ce, eps.data(), 2, nullptr, nullptr, 0), GNI_RC_INVALID_PARAM) << "one twice";
  EXPECT_EQ(GNI_CeConfigure(ce, &unbound, 1, nullptr, nullptr, 0), GNI_RC_INVALID_PARAM) << "no edge";
  EXPECT_EQ(GNI_CeConfigure(ce, &up, 1, nullptr, nullptr, 0x800), GNI_RC_INVALID_PARAM) << "a mode";
  EXPECT_EQ(GNI_CeConfigure(ce, &up, 1, up, nullptr, 0), GNI_RC_INVALID_PARAM)
      << "a parent that is a PE's edge";
  EXPECT_EQ(GNI_CeConfigure(ce, &up, 1, reinterpret_cast<gni_ep_handle_t>(7), nullptr, 0),
            GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CeConfigure(ce, &up, 1, nullptr, reinterpret_cast<gni_cq_handle_t>(7), 0),
            GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CeDestroy(ce), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CeDestroy(ce), GNI_RC_INVALID_PARAM);
  std::vector<gni_ce_handle_t> many;
  gni_return_t rc = GNI_RC_SUCCESS;
  while ((rc = GNI_CeCreate(domain.nic, &ce)) == GNI_RC_SUCCESS) many.push_back(ce);
  EXPECT_EQ(rc, GNI_RC_ERROR_RESOURCE);
  EXPECT_GE(many.size(), 8U);
  for (gni_ce_handle_t one : many) EXPECT_EQ(GNI_CeDestroy(one), GNI_RC_SUCCESS);

  const auto refused = [&](const char* what, auto spoil, gni_return_t code) {
    gni_post_descriptor_t d = join(GNI_FMA_CE_AND, 1, 1, 1);
    spoil(d);
    EXPECT_EQ(GNI_PostFma(up, &d), code) << what;
  };
  refused(
      "a command", [](auto& d) { d.ce_cmd = static_cast<gni_ce_cmd_type_t>(6); }, GNI_RC_INVALID_PARAM);
  refused(
      "a mode", [](auto& d) { d.ce_mode = 0x20; }, GNI_RC_INVALID_PARAM);
  refused(
      "nowhere", [](auto& d) { d.local_addr = 0; }, GNI_RC_INVALID_PARAM);
  refused(
      "misaligned", [](auto& d) { d.local_addr += 4; }, GNI_RC_ALIGNMENT_ERROR);
  refused(
      "no handle", [](auto& d) { d.local_mem_hndl = {}; }, GNI_RC_INVALID_PARAM);
  refused(
      "both events", [](auto& d) { d.cq_mode = 3; }, GNI_RC_INVALID_PARAM);
  refused(
      "not registered", [](auto& d) { d.local_addr += 1ull << 20; }, GNI_RC_INVALID_PARAM);
  gni_post_descriptor_t d = join(GNI_FMA_CE_AND, 1, 1, 1);
  EXPECT_EQ(GNI_PostFma(unbound, &d), GNI_RC_INVALID_PARAM);
  pmi.barrier();  // until then PE 0 may have them all, from above
  // No engine has that number: accepted, and the result and the event say so; where the engine is
  // reached by the wire the result alone, for the contribution has left long before.
  const gni_ep_handle_t astray = domain.endpoint(queue, domain.address, 0);
  REQUIRE_SUCCESS(GNI_EpSetCeAttr(astray, cards[0].engine ^ 15, 0, GNI_CE_CHILD_PE));
  ASSERT_EQ(GNI_PostFma(astray, &d), GNI_RC_SUCCESS);
  EXPECT_EQ(result(), GNI_RC_TRANSACTION_ERROR);
  EXPECT_NE(GNI_CE_RES_GET_STATUS(&results[0]), 0U);
  const char* const wire = std::getenv("ORRERY_WIRE");
  const bool all_by_wire = wire != nullptr && std::string_view(wire) == "ofi";
  const bool by_wire = pmi.rank != 0 && (all_by_wire || std::getenv("TWO_HOSTS") != nullptr);
  gni_cq_entry_t event = 0;
  if (!by_wire) {
    EXPECT_EQ(client::next_event(queue, &event), GNI_RC_TRANSACTION_ERROR);
  }
}

}  // namespace
