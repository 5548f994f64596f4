// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace orrery::job {
namespace {

using ::testing::HasSubstr;

std::map<std::string, std::string>* g_variables = nullptr;  // what GetEnv, a plain function, looks into

// The process that made PMI_FD, and its namespace of PMIx; nothing: what cannot be known.
std::optional<pid_t> g_maker = 0;
std::optional<std::string> g_namespace_of_maker;

Result<Launch> detect(std::map<std::string, std::string> variables) {
  g_variables = &variables;
  return Launch::detect(
      [](const char* name) -> const char* {
        const auto found = g_variables->find(name);
        return found == g_variables->end() ? nullptr : found->second.c_str();
      },
      {.maker_of = [](int) { return g_maker; },
       .variable_of = [](pid_t, const char*) { return g_namespace_of_maker; }});
}

// Restores what is pretended.
struct Pretended {
  Pretended(std::optional<pid_t> maker, std::optional<std::string> name = {}) {
    g_maker = maker;
    g_namespace_of_maker = std::move(name);
  }
  ~Pretended() {
    g_maker = 0;
    g_namespace_of_maker.reset();
  }
};

TEST(Launch, OfTwoLaunchersTheInnerOneCounts) {
  const std::map<std::string, std::string> both{{"PMI_FD", "7"},    {"PMI_RANK", "0"},
                                                {"PMI_SIZE", "1"},  {"PMIX_NAMESPACE", "ns"},
                                                {"PMIX_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}};
  {
    const Pretended hydra_in_mpirun(50, "ns");
    EXPECT_EQ(detect(both).value().kind, LaunchKind::pmi1);
  }
  {
    const Pretended mpirun_in_hydra(50, "");
    const auto launch = detect(both);
    EXPECT_EQ(launch.value().kind, LaunchKind::pmix);
    EXPECT_EQ(launch.value().rank, 2);
    EXPECT_EQ(launch.value().size, 3);
  }
  {
    const Pretended closed_by_mpirun(std::nullopt);
    EXPECT_EQ(detect(both).value().kind, LaunchKind::pmix);
  }
  {
    const Pretended of_another_user(50);
    EXPECT_EQ(detect(both).value().kind, LaunchKind::pmi1);
  }
}

TEST(Launch, InsideAPeOnlyTheOutermostIsOrreryRun) {
  const std::string at = "orrery.0.run.50.00000000000000ab";
  std::map<std::string, std::string> pe{
      {"PMI_FD", "65"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"ORRERY_JOB_AT", at}, {"ORRERY_JOB_FD", "64"}};
  for (const std::optional<pid_t> maker :
       {std::optional<pid_t>(50), std::optional<pid_t>(0), std::optional<pid_t>()}) {
    const Pretended own(maker);
    const auto launch = detect(pe);
    EXPECT_EQ(launch.value().kind, LaunchKind::pmi1);
    EXPECT_EQ(launch.value().entrance, at);
    EXPECT_EQ(launch.value().directory_fd, 64);
  }
  {
    const Pretended hydra(51);
    const auto launch = detect(pe);
    EXPECT_EQ(launch.value().kind, LaunchKind::pmi1);
    EXPECT_EQ(launch.value().directory_fd, -1);
    EXPECT_EQ(launch.value().entrance, "");
  }
  pe["PMIX_NAMESPACE"] = "inner";
  const Pretended own(50, "inner");
  EXPECT_EQ(detect(pe).value().kind, LaunchKind::pmix);
  EXPECT_EQ(detect(pe).value().directory_fd, -1);
  EXPECT_EQ(detect({{"ORRERY_JOB_AT", "somewhere"}}).code(), Errc::invalid_param);
}

TEST(Launch, NothingIsASingleton) {
  const auto launch = detect({});
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch.value().kind, LaunchKind::singleton);
  EXPECT_EQ(launch.value().rank, 0);
  EXPECT_EQ(launch.value().size, 1);
  EXPECT_FALSE(launch.value().pmi_problem());
}

TEST(Launch, PmiFdIsTheTextWireEvenBesideOthers) {
  const auto launch = detect({{"PMI_FD", "7"},
                              {"PMI_RANK", "2"},
                              {"PMI_SIZE", "4"},
                              {"MPI_LOCALNRANKS", "4"},
                              {"PMIX_NAMESPACE", "x"},
                              {"SLURM_PROCID", "2"},
                              {"SLURM_NTASKS", "4"}});
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch.value().kind, LaunchKind::pmi1);
  EXPECT_EQ(launch.value().pmi_fd, 7);
  EXPECT_EQ(launch.value().rank, 2);
  EXPECT_EQ(launch.value().size, 4);
  EXPECT_EQ(launch.value().local_size, 4);
  EXPECT_FALSE(launch.value().pmi_problem());
}

TEST(Launch, PmixIsNamedAndNeverASingleton) {
  const auto launch = detect({{"PMIX_NAMESPACE", "x"}, {"PMIX_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch.value().kind, LaunchKind::pmix);
  EXPECT_EQ(launch.value().rank, 1);
  EXPECT_FALSE(launch.value().pmi_problem());
}

TEST(Launch, PmixServerIsTakenFromItsAddress) {
  const auto server_of = [](const char* variable, const char* address) {
    return detect({{"PMIX_NAMESPACE", "x"}, {variable, address}}).value().server;
  };
  EXPECT_EQ(server_of("PMIX_SERVER_URI2", "1728512000.0;tcp4://127.0.0.1:41133"), "1728512000.0");
  EXPECT_EQ(server_of("PMIX_SERVER_URI41", "prterun-vm-7@0.0;tcp4://127.0.0.1:41133"), "prterun-vm-7@0.0");
  EXPECT_EQ(server_of("PMIX_SERVER_URI3", "alone"), "alone");
  EXPECT_EQ(server_of("PMIX_RANK", "1"), "");
}

TEST(Launch, SlurmWithoutPmiIsNamedWithTheOptionThatHelps) {
  const auto launch = detect({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}});
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch.value().kind, LaunchKind::slurm);
  EXPECT_EQ(launch.value().size, 4);
  ASSERT_TRUE(launch.value().pmi_problem());
  EXPECT_THAT(*launch.value().pmi_problem(), HasSubstr("--mpi=pmi2"));
}

TEST(Launch, OneSlurmTaskIsASingleton) {
  EXPECT_EQ(detect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}).value().kind, LaunchKind::singleton);
}

TEST(Launch, OneOfSeveralWithoutAWayToItsLauncherIsNoSingleton) {
  const auto lost = detect({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  ASSERT_TRUE(lost.ok());
  EXPECT_EQ(lost.value().kind, LaunchKind::unserved);
  EXPECT_EQ(lost.value().rank, 1);
  ASSERT_TRUE(lost.value().pmi_problem());
  EXPECT_THAT(*lost.value().pmi_problem(), HasSubstr("PMI_SIZE says that this is one of several processes"));
  const auto of_mpirun = detect({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "3"}});
  ASSERT_TRUE(of_mpirun.ok() && of_mpirun.value().pmi_problem());
  EXPECT_THAT(*of_mpirun.value().pmi_problem(), HasSubstr("OMPI_COMM_WORLD_SIZE says"));
  // mpiexec.hydra -pmi-port
  const auto by_port = detect({{"PMI_PORT", "vm:36175"}, {"PMI_ID", "0"}});
  ASSERT_TRUE(by_port.ok() && by_port.value().pmi_problem());
  EXPECT_THAT(*by_port.value().pmi_problem(), HasSubstr("without its option -pmi-port"));
  EXPECT_EQ(detect({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).value().kind, LaunchKind::singleton);
  EXPECT_EQ(detect({{"PMI_SIZE", "two"}}).code(), Errc::invalid_param);
}

TEST(Launch, NumbersThatAreNoneAreRefusedByName) {
  for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE", "ORRERY_JOB_FD"}) {
    for (const char* value : {"", "x", "-1", "3x", "99999999999"}) {
      std::map<std::string, std::string> variables{{"PMI_FD", "7"}};
      variables[name] = value;
      ::testing::internal::CaptureStderr();
      EXPECT_EQ(detect(variables).code(), Errc::invalid_param) << name << "=" << value;
      EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(std::string(name) + "=" + value));
    }
  }
}

}  // namespace
}  // namespace orrery::job
