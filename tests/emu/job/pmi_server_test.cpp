// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/pmi_server.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace orrery::job {
namespace {

using Phase = PmiServer::Phase;

class PmiServerTest : public ::testing::Test {
 protected:
  PmiServerTest() {
    for (std::uint32_t rank = 0; rank < 3; ++rank) one(rank, "cmd=init pmi_version=1 pmi_subversion=1");
  }
  // Sends a line; what came back to the same rank, which must be at most one line.
  std::string one(std::uint32_t rank, const std::string& line) {
    const auto out = server_.receive(rank, line + "\n");
    EXPECT_LE(out.size(), 1u) << line;
    if (out.empty()) return "";
    EXPECT_EQ(out[0].rank, rank);
    return out[0].text;
  }
  PmiServer server_{3, "space", "(vector,(0,1,3))"};
};

TEST_F(PmiServerTest, AnswersWhatALauncherKnows) {
  EXPECT_EQ(one(0, "cmd=get_maxes"), "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
  EXPECT_EQ(one(1, "cmd=get_appnum"), "cmd=appnum appnum=0\n");
  EXPECT_EQ(one(2, "cmd=get_my_kvsname"), "cmd=my_kvsname kvsname=space\n");
  EXPECT_EQ(one(0, "cmd=get_universe_size"), "cmd=universe_size size=3\n");
  EXPECT_EQ(one(0, "cmd=get kvsname=space key=PMI_process_mapping"),
            "cmd=get_result rc=0 msg=success value=(vector,(0,1,3))\n");
}

TEST_F(PmiServerTest, RefusesOtherVersions) {
  PmiServer fresh(1, "space", "x");
  const auto out = fresh.receive(0, "cmd=init pmi_version=2 pmi_subversion=0\n");
  ASSERT_EQ(out.size(), 1u);
  EXPECT_NE(out[0].text.find("rc=-1"), std::string::npos);
  EXPECT_EQ(fresh.phase(0), Phase::silent);
}

TEST_F(PmiServerTest, KeepsPairsAndRefusesASecondPut) {
  EXPECT_EQ(one(0, "cmd=put kvsname=space key=a value=b=c"), "cmd=put_result rc=0 msg=success\n");
  EXPECT_EQ(one(1, "cmd=get kvsname=space key=a"), "cmd=get_result rc=0 msg=success value=b=c\n");
  EXPECT_NE(one(2, "cmd=put kvsname=space key=a value=d").find("rc=-1"), std::string::npos);
  EXPECT_NE(one(2, "cmd=get kvsname=space key=b").find("rc=-1"), std::string::npos);
  EXPECT_NE(one(2, "cmd=get kvsname=other key=a").find("rc=-1"), std::string::npos);
  EXPECT_NE(one(2, "cmd=put kvsname=other key=x value=d").find("rc=-1"), std::string::npos);
}

TEST_F(PmiServerTest, ProgramsOfAPeMayComeOneAfterTheOther) {
  for (int program = 0; program < 3; ++program) {
    const std::string value = "v" + std::to_string(program);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      // Each is a second put of its own key only within its program.
      const std::string put = "cmd=put kvsname=space key=k" + std::to_string(rank) + " value=" + value;
      EXPECT_EQ(one(rank, put), "cmd=put_result rc=0 msg=success\n");
      EXPECT_NE(one(rank, put).find("duplicate_key"), std::string::npos);
    }
    for (std::uint32_t rank = 0; rank < 2; ++rank) EXPECT_EQ(one(rank, "cmd=barrier_in"), "");
    EXPECT_EQ(server_.receive(2, "cmd=barrier_in\n").size(), 3u);
    EXPECT_EQ(one(1, "cmd=get kvsname=space key=k2"),
              "cmd=get_result rc=0 msg=success value=" + value + "\n");
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(one(rank, "cmd=finalize"), "cmd=finalize_ack\n");
      if (rank == 1) server_.start_over(rank);  // by a wire of its own
      EXPECT_NE(one(rank, "cmd=init pmi_version=1 pmi_subversion=1").find("rc=0"), std::string::npos);
      EXPECT_EQ(server_.phase(rank), Phase::initialised);
    }
  }
}

TEST_F(PmiServerTest, APeThatPutsWithoutEndIsToldTheLimit) {
  std::string last;
  int taken = -1;
  for (; taken < 200'000 && last.find("rc=-1") == std::string::npos; ++taken)
    last = one(0, fmt::format("cmd=put kvsname=space key=k{} value=v", taken));
  EXPECT_LE(taken, 1 << 17);
  EXPECT_NE(last.find("131072"), std::string::npos) << last;
  EXPECT_NE(one(1, "cmd=get kvsname=space key=k7").find("value=v"), std::string::npos) << "the others go on";
}

TEST_F(PmiServerTest, LimitsAreThoseThatItAnnounces) {
  const std::string key(kPmiKeyMax, 'k');
  const std::string value(kPmiValueMax, 'v');
  EXPECT_NE(one(0, "cmd=put kvsname=space key=" + key + " value=" + value).find("rc=0"), std::string::npos);
  EXPECT_NE(one(0, "cmd=put kvsname=space key=" + key + "k value=v").find("rc=-1"), std::string::npos);
  EXPECT_NE(one(0, "cmd=put kvsname=space key=k value=v" + value).find("rc=-1"), std::string::npos);
  EXPECT_NE(one(0, "cmd=put kvsname=space key= value=v").find("rc=-1"), std::string::npos);
  EXPECT_NE(one(0, "cmd=put kvsname=space value=v").find("rc=-1"), std::string::npos);
}

TEST_F(PmiServerTest, BarrierEndsWhenTheLastEnters) {
  EXPECT_TRUE(server_.receive(2, "cmd=barrier_in\n").empty());
  EXPECT_TRUE(server_.receive(0, "cmd=barrier_in\n").empty());
  EXPECT_EQ(server_.phase(0), Phase::in_barrier);
  EXPECT_TRUE(server_.anybody_in_barrier());
  const auto out = server_.receive(1, "cmd=barrier_in\n");
  ASSERT_EQ(out.size(), 3u);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(out[rank].rank, rank);
    EXPECT_EQ(out[rank].text, "cmd=barrier_out\n");
    EXPECT_EQ(server_.barriers_done(rank), 1u);
    EXPECT_EQ(server_.phase(rank), Phase::initialised);
  }
  EXPECT_FALSE(server_.anybody_in_barrier());
}

TEST_F(PmiServerTest, EnteringTwiceBreaksTheClientAndCountsOnce) {
  EXPECT_TRUE(server_.receive(0, "cmd=barrier_in\ncmd=barrier_in\n").empty());
  EXPECT_EQ(server_.phase(0), Phase::broken);
  EXPECT_TRUE(server_.receive(1, "cmd=barrier_in\n").empty());
  EXPECT_TRUE(server_.receive(2, "cmd=barrier_in\n").empty());
  EXPECT_EQ(server_.barriers_done(1), 0u);
}

TEST_F(PmiServerTest, ClientThatBreaksTheGrammarIsIsolatedAndQuoted) {
  EXPECT_TRUE(server_.receive(1, "GET / HTTP/1.0\n").empty());
  EXPECT_EQ(server_.phase(1), Phase::broken);
  EXPECT_EQ(server_.complaint(1), "GET / HTTP/1.0");
  EXPECT_TRUE(server_.receive(1, "cmd=get_maxes\n").empty());
  EXPECT_NE(one(0, "cmd=get_maxes"), "");
}

TEST_F(PmiServerTest, EndlessLineBreaksTheClient) {
  EXPECT_TRUE(server_.receive(1, std::string(100'000, 'x')).empty());
  EXPECT_EQ(server_.phase(1), Phase::broken);
}

TEST_F(PmiServerTest, NothingComesBeforeInit) {
  PmiServer fresh(1, "space", "x");
  EXPECT_TRUE(fresh.receive(0, "cmd=get_maxes\n").empty());
  EXPECT_EQ(fresh.phase(0), Phase::broken);
}

TEST_F(PmiServerTest, UnknownCommandsAndSpawnAreRefusedNotFatal) {
  EXPECT_EQ(one(0, "cmd=publish_name service=x port=y"), "cmd=publish_name_result rc=-1 msg=not_supported\n");
  EXPECT_TRUE(server_.receive(0, "mcmd=spawn\nnprocs=2\nexecname=a b c\n").empty());
  EXPECT_NE(one(0, "endcmd").find("spawn_result rc=-1"), std::string::npos);
  EXPECT_EQ(server_.phase(0), Phase::initialised);
}

TEST_F(PmiServerTest, WhoFinalizesInABarrierDoesNotCountInIt) {
  EXPECT_TRUE(server_.receive(0, "cmd=barrier_in\n").empty());
  EXPECT_TRUE(server_.receive(0, "cmd=finalize\n").empty());
  EXPECT_EQ(server_.phase(0), Phase::broken);
  EXPECT_FALSE(server_.anybody_in_barrier());
}

TEST_F(PmiServerTest, MappingThatNoValueHoldsIsNotThere) {
  PmiServer server(1, "space", std::string(kPmiValueMax, 'x'));
  EXPECT_FALSE(server.receive(0, "cmd=init pmi_version=1 pmi_subversion=1\n").empty());
  const auto out = server.receive(0, "cmd=get kvsname=space key=PMI_process_mapping\n");
  ASSERT_EQ(out.size(), 1u);
  EXPECT_TRUE(out[0].text.starts_with("cmd=get_result rc=-1"));
}

TEST_F(PmiServerTest, FirstAbortIsKept) {
  one(1, "cmd=abort exitcode=7");
  one(2, "cmd=abort exitcode=9");
  ASSERT_TRUE(server_.aborted());
  EXPECT_EQ(server_.aborted()->rank, 1u);
  EXPECT_EQ(server_.aborted()->code, 7);
}

}  // namespace
}  // namespace orrery::job
