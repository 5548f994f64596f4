// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What `orrery run` accepts, what the PEs see, and what comes back when all goes well.
#include "tests/tools/orrery/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace orrery::tool::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(Run, StartsThatManyPesAndTellsThemWhoTheyAre) {
  const Ran ran =
      orrery({"run", "-n", "3", "sh", "-c", "echo $PMI_RANK of $PMI_SIZE at ${PMI_FD:?} $ALPS_APP_PE"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto lines = sorted_lines(ran.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[2], ::testing::StartsWith("2 of 3 at "));
  EXPECT_THAT(lines[2], ::testing::EndsWith(" 2"));
}

TEST(Run, DefaultsToOnePe) { EXPECT_EQ(orrery({"run", "sh", "-c", "echo $PMI_SIZE"}).out, "1\n"); }

TEST(Run, ProgramKeepsItsOwnOptions) {
  EXPECT_EQ(orrery({"run", "-n", "1", "echo", "-n", "3", "--", "--label"}).out, "3 -- --label");
  EXPECT_EQ(orrery({"run", "-n", "1", "--", "echo", "--help", "--"}).out, "--help --\n");
  EXPECT_EQ(orrery({"run", "--pes=1", "--", "echo", "a b"}).out, "a b\n");
}

TEST(Run, LabelsEveryLineWithThePe) {
  const Ran ran = orrery({"run", "-n", "2", "-l", "sh", "-c", "printf 'one\\ntwo'; echo three >&2"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(sorted_lines(ran.out), ElementsAre("[0] one", "[0] two", "[1] one", "[1] two"));
  EXPECT_THAT(sorted_lines(ran.err), ElementsAre("[0] three", "[1] three"));
}

TEST(Run, LabelledLinesOfManyPesAreNotTorn) {
  const Ran ran = orrery({"run", "-n", "4", "--label", "sh", "-c",
                          "i=0; while [ $i -lt 200 ]; do echo abcdefghijklmnopqrstuvwxyz; i=$((i+1)); done"});
  EXPECT_EQ(ran.code, 0);
  const auto lines = sorted_lines(ran.out);
  ASSERT_EQ(lines.size(), 800u);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i], "[" + std::to_string(i / 200) + "] abcdefghijklmnopqrstuvwxyz");
  }
}

TEST(Run, LineWithoutEndIsCutNotKept) {
  const Ran ran = orrery({"run", "--label", "sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), 'x'), 300000);
  EXPECT_GT(std::count(ran.out.begin(), ran.out.end(), '\n'), 1);
}

TEST(Run, CliquesFollowThePretendedNodes) {
  const Ran ran = orrery(
      {"run", "-n", "3", "--nodes", "2", "sh", "-c", "echo $PMI_RANK: $MPI_LOCALRANKID of $MPI_LOCALNRANKS"});
  EXPECT_THAT(sorted_lines(ran.out), ElementsAre("0: 0 of 2", "1: 1 of 2", "2: 0 of 1"));
  const TempFile place("node 9 pes 0,2\nnode 3 pes 1 # alone\n");
  const Ran placed = orrery({"run", "-n", "3", "--place", place.path(), "sh", "-c",
                             "echo $PMI_RANK: $MPI_LOCALRANKID of $MPI_LOCALNRANKS"});
  EXPECT_THAT(sorted_lines(placed.out), ElementsAre("0: 0 of 2", "1: 0 of 1", "2: 1 of 2"));
}

TEST(Run, VariablesOfAnotherLauncherAreNotPassedOn) {
  setenv("PMIX_NAMESPACE", "other", 1);
  setenv("SLURM_PROCID", "5", 1);
  const Ran ran = orrery({"run", "sh", "-c", "echo ${PMIX_NAMESPACE:-none} ${SLURM_PROCID:-none}"});
  unsetenv("PMIX_NAMESPACE");
  unsetenv("SLURM_PROCID");
  EXPECT_EQ(ran.out, "none none\n");
}

TEST(Run, UnknownVariablesAreWarnedAboutOnce) {
  setenv("ORRERY_ADOPTT", "hot", 1);
  const Ran ran = orrery({"run", "-n", "3", "true"});
  unsetenv("ORRERY_ADOPTT");
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(sorted_lines(ran.err), ElementsAre(HasSubstr("did you mean ORRERY_ADOPT?")));
}

TEST(Run, FaultsReachThePes) {
  EXPECT_EQ(orrery({"run", "--fault", "drop=0.5", "sh", "-c", "echo $ORRERY_FAULT"}).out, "drop=0.5\n");
}

TEST(Run, LimitsOfTheEnvironmentAreRefusedAsThoseOfTheOption) {
  setenv("ORRERY_LIMITS", "mdd=many", 1);
  const Ran ran = orrery({"run", "true"});
  unsetenv("ORRERY_LIMITS");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("ORRERY_LIMITS: 'mdd=many' is not accepted: expected a list of mdd=N"));
}

TEST(Run, MalformedFaultsOfTheEnvironmentAreRefused) {
  setenv("ORRERY_FAULT", "drop=0.1,delay=1", 1);
  const Ran ran = orrery({"run", "true"});
  unsetenv("ORRERY_FAULT");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("ORRERY_FAULT: 'delay=1' is not accepted: expected delay=WHEN:TIME"));
}

// A variable of the environment, for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(Run, AWrongValueOfAVariableIsRefusedUnlessAnOptionStandsInItsPlace) {
  const Variable device("ORRERY_DEVICE", "arise");
  const Ran ran = orrery({"run", "true"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("ORRERY_DEVICE=arise is not accepted: expected aries|gemini"));
  EXPECT_EQ(orrery({"run", "--device", "aries", "true"}).code, 0);
  const Variable faults("ORRERY_WIRE_FAULTS", "drop=often");
  EXPECT_THAT(orrery({"run", "--device", "aries", "true"}).err, HasSubstr("ORRERY_WIRE_FAULTS=drop=often"));
}

// One line, whatever reads the variable first.
TEST(Run, ASizeOrTimeOfTheEnvironmentThatIsNoneIsToldInOneLine) {
  struct {
    const char* name;
    const char* accepts;
  } const numbers[] = {
      {"ORRERY_ADOPT_AFTER", "1..1000000 operations"},    {"ORRERY_AMO_CACHE_ENTRIES", "1..1024 words"},
      {"ORRERY_BTE_CROSSOVER", "4096..4294967295 bytes"}, {"ORRERY_DEADLOCK", "1..86400 s"},
      {"ORRERY_OPTIMISTIC", "1..1000000000 ns"},          {"ORRERY_SPINS", "0..1000000 polls"},
      {"ORRERY_WIRE_TIMEOUT", "100..3600000 ms"},         {"ORRERY_YIELDS", "0..1000000 yields"}};
  for (const auto& [name, accepts] : numbers) {
    for (const std::string value : {"many", "-5", "99999999999999999999", "4K", "", "1.5"}) {
      const Variable variable(name, value.c_str());
      const Ran ran = orrery({"run", "true"});
      EXPECT_EQ(ran.code, 2) << name;
      EXPECT_EQ(ran.err, "orrery: " + std::string(name) + "=" + value + " is not accepted: expected " +
                             accepts + "\n");
    }
  }
  const Variable wire("ORRERY_WIRE", "on");
  EXPECT_EQ(orrery({"run", "--machine", "aries", "true"}).err,
            "orrery: ORRERY_WIRE=on is not accepted: expected auto|ofi\n");
}

TEST(Run, WhatHasNoEffectUnderAClockIsRefused) {
  {
    const Variable faults("ORRERY_FAULT", "drop=0.5");
    const Ran ran = orrery({"run", "--machine", "aries", "true"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("ORRERY_FAULT works in raw time only"));
    EXPECT_EQ(orrery({"run", "--machine", "aries", "--clock", "raw", "true"}).code, 0);
  }
  const Variable wire("ORRERY_WIRE", "ofi");
  const Ran ran = orrery({"run", "--machine", "aries", "true"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err,
              HasSubstr("ORRERY_WIRE=ofi cannot be used with a clock: unset it or take --clock raw"));
}

TEST(Run, ADeadNodeThatNobodyLivesOnIsWarnedOf) {
  const Ran ran = orrery({"run", "-n", "4", "--nodes", "3", "--fault", "dead=3,dead=9@5", "true"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(sorted_lines(ran.err),
              ElementsAre("orrery: warn: dead=9: no PE has such a NIC address; theirs: 1 to 3"));
}

TEST(Run, NumbersOfPesAndHelpAreTakenAsOthersWriteThem) {
  EXPECT_EQ(orrery({"run", "-np", "2", "sh", "-c", "echo $PMI_SIZE"}).out, "2\n2\n");
  EXPECT_EQ(orrery({"run", "--np", "1", "echo", "-np"}).out, "-np\n");
  const Ran help = orrery({"help", "run"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("Usage: orrery run [OPTIONS] [--] PROGRAM [ARGUMENTS]"));
  EXPECT_EQ(help.out, orrery({"run", "--help"}).out);
  EXPECT_EQ(orrery({"help"}).out, orrery({"--help"}).out);
  EXPECT_EQ(orrery({"version"}).out, orrery({"--version"}).out);
}

TEST(Run, WhatLiesWhereAPeWritesItsRecordIsNeitherFollowedNorWaitedFor) {
  std::string folder = (std::filesystem::temp_directory_path() / "orrery-test-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string trace = folder + "/trace.json";
  const std::string record = trace + ".pe.0";
  const auto refused = [&] {
    const Ran ran = orrery({"run", "--timeout", "60", "--machine", "aries", "--trace", trace, "true"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, HasSubstr(record + " cannot be read: "));
    EXPECT_FALSE(std::filesystem::exists(trace));
  };
  ASSERT_EQ(mkfifo(record.c_str(), 0600), 0);
  refused();
  // A record as a PE writes it, under another name.
  std::ofstream(folder + "/other") << "# not exact: 0 0 0\n";
  std::filesystem::remove(record);
  ASSERT_EQ(symlink((folder + "/other").c_str(), record.c_str()), 0);
  refused();
  std::filesystem::remove_all(folder);
}

// What PE 0 of a run recorded: an operation at 0 ps that took no time, which no machine answers.
std::string writes_a_record(const std::string& of_the_operation) {
  return "printf '# machine aries\\n# not exact: 0 0 0\\n" + of_the_operation +
         "' > $ORRERY_RECORD.$PMI_RANK";
}

TEST(Run, AConflictIsSaidOnStderrWithAnyFileThatWasAskedFor) {
  const std::string record = writes_a_record("0 0 1 0 0 0 0 1 8 0 0 0 0 0 0 0 0 0\\n");
  for (const char* option : {"--json", "--trace", "--record", "--link-report"}) {
    const TempFile file("");
    const Ran ran = orrery({"run", "--machine", "aries", option, file.path(), "sh", "-c", record});
    EXPECT_EQ(ran.code, 0) << option;
    EXPECT_THAT(ran.err,
                HasSubstr("virtual time: this run is not exact: the machine would have answered 1 of "
                          "1 operations otherwise in the order of time"))
        << option;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST(Run, ARunWithoutConflictsSaysNothing) {
  const TempFile file("");
  const Ran ran =
      orrery({"run", "--machine", "aries", "--json", file.path(), "sh", "-c", writes_a_record("")});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
}

// So does a program that reduces in the collective engine and does nothing else.
TEST(Run, ARunWithNothingOnTheNetworkRecordsATraceWithoutRecords) {
  for (const int code : {0, 7}) {
    const TempFile file("");
    const Ran ran = orrery({"run", "--machine", "gemini", "--record", file.path(), "sh", "-c",
                            writes_a_record("") + "; exit " + std::to_string(code)});
    EXPECT_EQ(ran.code, code) << ran.err;
    EXPECT_THAT(ran.err,
                HasSubstr("orrery: --record " + file.path() + ": no operation of the run went over"));
    const Ran replayed = orrery({"sim", "--replay", file.path(), "--machine", "gemini", "--nodes", "2x2x1"});
    EXPECT_EQ(replayed.code, 0) << replayed.err;
    EXPECT_THAT(replayed.out, HasSubstr("finished after 0.00 us simulated"));
  }
}

TEST(Run, OneForEachCoreIsBoundToIt) {
  const Ran ran = orrery({"run", "--bind", "core", "sh", "-c",
                          "unset OMP_NUM_THREADS OMP_THREAD_LIMIT; nproc; "
                          "cat /sys/devices/system/cpu/cpu0/topology/thread_siblings_list || echo 0-7"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  int bound = 0, first = 0, last = 0;
  char between = ' ';
  const int read = std::sscanf(ran.out.c_str(), "%d %d%c%d", &bound, &first, &between, &last);
  ASSERT_GE(read, 2) << ran.out;
  // Threads of a core: "0", "0-1", or "0,64" for two.
  const int threads = read < 4 ? 1 : between == '-' ? last - first + 1 : 2;
  EXPECT_GE(bound, 1);
  EXPECT_LE(bound, threads) << ran.out;
}

struct Refused {
  const char* name;
  std::vector<std::string> args;
  const char* said;
};
class RunRefuses : public ::testing::TestWithParam<Refused> {};

TEST_P(RunRefuses, WithOneLineAndCode2) {
  const Ran ran = orrery(GetParam().args);
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr(GetParam().said));
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
}

INSTANTIATE_TEST_SUITE_P(
    Table, RunRefuses,
    ::testing::Values(
        Refused{"MissingProgram",
                {"run", "no-such-program"},
                "'no-such-program' cannot be run: expected an executable file in PATH, there is none of that "
                "name"},
        Refused{"MissingFile",
                {"run", "./missing"},
                "'./missing' cannot be run: expected an executable file, there is no such file"},
        Refused{"Folder", {"run", "/"}, "'/' cannot be run: expected an executable file, it is a folder"},
        Refused{"NotExecutable",
                {"run", "/etc/passwd"},
                "'/etc/passwd' cannot be run: expected an executable file, it is not executable (chmod +x)"},
        Refused{"PesTwice", {"run", "-n", "2", "-n", "3", "true"}, "-n is given 2 times"},
        Refused{"FaultUnderAClock",
                {"run", "--machine", "aries", "--fault", "drop=0.5", "true"},
                "--fault works in raw time only: leave out --machine, or add --clock raw"},
        Refused{"Provider", {"run", "--provider", "nosuch", "true"}, "provider nosuch cannot be used"},
        Refused{"Interface", {"run", "--interface", "nosuch0", "true"}, "nosuch0"},
        Refused{"EmptyPes", {"run", "-n", "", "true"}, "-n,--pes,--np '' is not accepted: expected a value"},
        Refused{"EmptyNodes", {"run", "--nodes", "", "true"}, "--nodes '' is not accepted: expected a value"},
        Refused{"EmptyTimeout", {"run", "--timeout", "", "true"}, "--timeout '' is not accepted"},
        Refused{"EmptyPlace", {"run", "--place", "", "true"}, "--place '' is not accepted"},
        Refused{"EmptyMachine", {"run", "--machine", "", "true"}, "--machine '' is not accepted"},
        Refused{"EmptyFault", {"run", "--fault", "", "true"}, "--fault '' is not accepted"},
        Refused{"EmptyHosts", {"run", "--hosts", "", "true"}, "--hosts '' is not accepted"},
        Refused{"FlagWithAValue", {"run", "--label=3", "true"}, "label was given"},
        Refused{"ProgramLikeAnOption", {"run", "--", "--version"}, "'./--version' cannot be run"},
        Refused{"OptionOfASubcommand", {"sim", "--fast"}, "try 'orrery sim --help'"},
        Refused{"NoProgram", {"run", "-n", "2"}, "no program given"},
        Refused{"NoPes", {"run", "-n", "0", "true"}, "-n 0 is not accepted: expected 1..1024 PEs"},
        Refused{"TooManyPes", {"run", "-n", "1025", "true"}, "-n 1025 is not accepted: expected 1..1024 PEs"},
        Refused{"PesNoNumber", {"run", "-n", "two", "true"}, "-n two is not accepted"},
        Refused{"PesNegative", {"run", "-n", "-2", "true"}, "-n"},
        Refused{"TooManyNodes",
                {"run", "-n", "2", "--nodes", "3", "true"},
                "--nodes 3 is not accepted: expected 1..2"},
        Refused{"Timeout",
                {"run", "--timeout", "soon", "true"},
                "--timeout soon is not accepted: expected 0.001..1000000"},
        Refused{"TimeoutZero", {"run", "--timeout", "0", "true"}, "--timeout 0 is not accepted"},
        Refused{"TimeoutNan", {"run", "--timeout", "nan", "true"}, "--timeout nan is not accepted"},
        Refused{"Bind",
                {"run", "--bind", "socket", "true"},
                "--bind socket is not accepted: expected none or core"},
        Refused{"BindTooMany",
                {"run", "-n", "1024", "--bind", "core", "true"},
                "--bind core is not accepted for 1024 PEs"},
        Refused{"FaultWord",
                {"run", "--fault", "seed=1,lose=0.5", "true"},
                "--fault: 'lose=0.5' is not accepted: expected a list with commas of drop=WHEN"},
        Refused{"FaultValue",
                {"run", "--fault", "drop=often", "true"},
                "--fault: 'drop=often' is not accepted: expected drop=WHEN, a chance 0..1 or @N"},
        Refused{"ComputeWithoutMachine",
                {"run", "--compute", "measured", "true"},
                "--compute measured needs virtual time"},
        Refused{"ViaNothing", {"run", "--via", " ", "true"}, "--via names no launcher"},
        Refused{"ViaNoLauncher",
                {"run", "--via", "no_such_mpirun -x A", "true"},
                "--via no_such_mpirun cannot be run: expected a launcher"},
        Refused{"ViaAndTheLaunchersOwn",
                {"run", "--via", "env", "--label", "true"},
                "--label cannot be used with --via: expected the launcher's own"},
        Refused{"ViaAndHosts",
                {"run", "--via", "env", "--hosts", "a,b", "true"},
                "--hosts cannot be used with --via"},
        Refused{"UnknownOption", {"run", "--fast", "true"}, "unknown option --fast"},
        Refused{"NoPlaceFile", {"run", "--place", "/nowhere/x", "true"}, "--place /nowhere/x cannot be read"},
        Refused{"PlaceFolder", {"run", "--place", "/", "true"}, "--place / cannot be read"},
        Refused{"PlaceMalformed", {"run", "--place", "/etc/passwd", "true"}, "--place /etc/passwd: line 1: "},
        Refused{"PlaceAndNodes", {"run", "--place", "x", "--nodes", "1", "true"}, "excludes"},
        Refused{"Subcommand", {"fly"}, "unknown subcommand 'fly': expected one of "},
        Refused{"Nothing", {}, "no subcommand given"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Run, AnotherLauncherGetsItsOptionsThePesAndAProgramThatHasItsVariables) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sh is not instrumented, and liborrery.so is loaded into it";
#endif
  const TempFile launcher(
      "#!/bin/sh\n"
      "[ \"$1 $2 $3\" = '--own -n 3' ] || { echo \"found $*\"; exit 1; }\n"
      "shift 3\n"
      "\"$@\"\n");
  ASSERT_EQ(std::system(("chmod +x " + launcher.path()).c_str()), 0);
  const Ran ran = orrery({"run", "--via", launcher.path() + " --own", "-n", "3", "--machine", "gemini",
                          "--compute", "2", "sh", "-c",
                          "echo $ORRERY_MACHINE $ORRERY_COMPUTE tag ${PMI_GNI_PTAG:?} key "
                          "${PMI_GNI_COOKIE:?} path $LD_LIBRARY_PATH; "
                          "echo preload $LD_PRELOAD; echo $OMPI_MCA_mpi_event_tick_rate "
                          "$OMPI_MCA_rmaps_base_oversubscribe; exit 7"});
  EXPECT_EQ(ran.code, 7) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("gemini 2 tag "));
  EXPECT_THAT(ran.out, HasSubstr("/emu:"));
  EXPECT_THAT(ran.out, HasSubstr("/liborrery.so.0\n1 1\n"));
}

// As timeout(1) ends a job: a signal to its child, and one to the child's group.
TEST(Run, AnotherLauncherIsToldOnceToEnd) {
  const TempFile launcher(
      "#!/bin/sh\n"
      "trap 'told=$((told + 1))' TERM\n"
      "told=0\n"
      "for i in 1 2 3 4 5 6; do kill -TERM $PPID; sleep 0.05; done\n"
      "echo told $told\n");
  ASSERT_EQ(std::system(("chmod +x " + launcher.path()).c_str()), 0);
  const Ran ran = orrery({"run", "--via", launcher.path(), "-n", "1", "true"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "told 1\n");
}

TEST(Run, WithoutAMachineAnotherLaunchersProgramHasNothingPreloaded) {
  const Ran ran = orrery({"run", "--via", "env -i", "sh", "-c", "true"});
  EXPECT_EQ(ran.code, 125) << "env knows no -n";
  const TempFile launcher("#!/bin/sh\nshift 2\n\"$@\"\n");
  ASSERT_EQ(std::system(("chmod +x " + launcher.path()).c_str()), 0);
  const Ran raw =
      orrery({"run", "--via", launcher.path(), "sh", "-c", "echo preload $LD_PRELOAD; kill -9 $$"});
  EXPECT_EQ(raw.code, 128 + 9);
  EXPECT_THAT(raw.out, HasSubstr("preload\n"));
}

TEST(Run, ScriptWithoutAnInterpreterIsRefusedWithCode2) {
  const TempFile script("not a script\n");
  ASSERT_EQ(std::system(("chmod +x " + script.path()).c_str()), 0);
  const Ran ran = orrery({"run", "-n", "2", script.path()});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("cannot be run: Exec format error"));
}

}  // namespace
}  // namespace orrery::tool::test
