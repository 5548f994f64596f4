// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// `orrery run --log`: what it tells of a program's calls.
#include "tests/tools/orrery/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <dlfcn.h>
#include <unistd.h>

namespace orrery::tool::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const std::string kClient = LOG_CLIENT;
const std::string kDmappClient = LOG_DMAPP_CLIENT;
const std::string kPortalsClient = LOG_PORTALS_CLIENT;
const std::string kPortals3Client = LOG_PORTALS3_CLIENT;
const std::string kCciClient = LOG_CCI_CLIENT;

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(CallLog, TellsEachCallWithArgumentsAndResult) {
  const Ran ran = orrery({"run", "--log", "gni", kClient});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "1\n");
  EXPECT_THAT(ran.err, ContainsRegex("orrery: pe 0: gni: [0-9]+\\.[0-9]{6} GNI_CdmCreate\\(inst_id 77, ptag "
                                     "[0-9]+, cookie 0x[0-9a-f]+, modes 0x8\\) = SUCCESS, cdm_hndl 0x"));
  EXPECT_THAT(
      ran.err,
      ContainsRegex("GNI_EpBind\\(ep_hndl NULL, remote_addr [0-9]+, remote_id 77\\) = INVALID_PARAM\n"));
  EXPECT_THAT(
      ran.err,
      ContainsRegex("GNI_MemRegister\\(nic_hndl 0x[0-9a-f]+, address 0x[0-9a-f]+, length 8, dst_cq_hndl "
                    "NULL, flags 0x0, vmdh_index -1\\) = SUCCESS, mem_hndl [0-9a-f]+:[0-9a-f]+\n"));
  EXPECT_THAT(
      ran.err,
      ContainsRegex("GNI_PostFma\\(.*\\{FMA_PUT, cq_mode 0x2, local .* in 0:0, remote .*, length 8\\}\\) "
                    "= SUCCESS\n"));
  EXPECT_THAT(
      ran.err,
      ContainsRegex("GNI_CqWaitEvent\\(.*, timeout 10000\\) = SUCCESS, event_data 0x[0-9a-f]+ \\{POST, "
                    "inst_id 77, status 0x0\\}\n"));
  EXPECT_THAT(ran.err, ContainsRegex("GNI_GetCompleted\\(.*\\) = SUCCESS, post_descr 0x"));
}

TEST(CallLog, LooksThatFindNothingAreToldOnceAndCounted) {
  const Ran ran = orrery({"run", "--log", "gni", kClient});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(count(ran.err, "GNI_CqGetEvent("), 1) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("GNI_CqGetEvent: the same 99 times more\n"));
  // What may sleep is told before it does.
  const auto before = ran.err.find("timeout 1) ...\n");
  const auto after = ran.err.find("timeout 1) = TIMEOUT\n");
  ASSERT_NE(before, std::string::npos) << ran.err;
  ASSERT_NE(after, std::string::npos) << ran.err;
  EXPECT_LT(before, after);
}

// As clients do that look everywhere by turns.
TEST(CallLog, LooksInDifferentWaysByTurnsAreCountedToo) {
  const Ran ran = orrery({"run", "--log", "gni", kClient, "--rotate"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* call : {"GNI_CqGetEvent", "GNI_CqTestEvent", "GNI_PostDataProbeById"})
    EXPECT_EQ(count(ran.err, std::string(call) + ": the same 999 times more\n"), 1) << call << ran.err;
  EXPECT_LT(count(ran.err, "\n"), 40) << ran.err;
}

TEST(CallLog, GoesToAFileForEachPe) {
  const TempFile base("");
  const Ran ran = orrery({"run", "-n", "2", "--nodes", "2", "--log", "gni=" + base.path(), kClient});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, Not(HasSubstr("GNI_")));
  for (const char* pe : {"0", "1"}) {
    const std::string file = base.path() + "." + pe;
    EXPECT_THAT(contents(file), HasSubstr(std::string("orrery: pe ") + pe + ": gni: "));
    EXPECT_EQ(count(contents(file), "GNI_CdmDestroy("), 1);
    unlink(file.c_str());
  }
}

TEST(CallLog, KeepsOutOfTheFilesOfItsClientAndTellsEachLookOnce) {
  const TempFile base(""), other("");
  const Ran ran = orrery({"run", "--log", "gni=" + base.path(), kClient, other.path()});
  const std::string file = base.path() + ".0";
  const std::string log = contents(file);
  unlink(file.c_str());
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(contents(other.path()), "") << "it has the number that the log had";
  EXPECT_EQ(count(log, "GNI_CdmDestroy("), 1) << log;
  EXPECT_THAT(log, ContainsRegex("GNI_CqWaitEvent\\(.*, timeout 1\\) = ERROR_RESOURCE\n"))
      << "and no event, where none was given";
  EXPECT_EQ(count(log, "the same 4 times more"), 1) << "not once more by the child of a fork: " << log;
}

TEST(CallLog, ProgramsWithoutUgniRunAsBefore) {
  const Ran ran = orrery({"run", "-n", "2", "--log", "gni", "sh", "-c", "echo $((20 + 3)) | cat"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "23\n23\n");
}

TEST(CallLog, WithoutTheOptionNothingIsLoadedOrTold) {
  const Ran ran = orrery({"run", kClient});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(orrery({"run", "sh", "-c", "echo \"<$LD_PRELOAD>\""}).out, "<>\n");
}

TEST(CallLog, RefusesOtherWords) {
  EXPECT_THAT(orrery({"run", "--log", "mpi", "true"}).err,
              HasSubstr("--log mpi is not accepted: expected one or more of gni"));
  EXPECT_THAT(orrery({"run", "--log", "gni,mpi", "true"}).err, HasSubstr("--log gni,mpi is not accepted"));
  EXPECT_THAT(orrery({"run", "--log", "gni=", "true"}).err, HasSubstr("--log gni= is not accepted"));
  EXPECT_THAT(orrery({"run", "--log", "=x", "true"}).err, HasSubstr("--log =x is not accepted"));
  const Ran ran = orrery({"run", "--log", "gni=/no/such/folder/log", "true"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("/no/such/folder is not a folder"));
}

TEST(CallLog, TellsTheCallsOfDmapp) {
  const Ran ran = orrery({"run", "-n", "2", "--log", "dmapp", kDmappClient});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err,
              ContainsRegex("orrery: pe 0: dmapp: [0-9]+\\.[0-9]{6} dmapp_init\\(requested NULL\\) = "
                            "SUCCESS, actual \\{max_outstanding_nb [0-9]+, "));
  EXPECT_THAT(ran.err, ContainsRegex("dmapp_get_jobinfo\\(\\) = SUCCESS, info \\{pe 1 of 2, data_seg \\{0x"));
  EXPECT_THAT(ran.err, ContainsRegex("dmapp_put\\(target_addr 0x[0-9a-f]+, target_seg \\{0x[0-9a-f]+, [0-9]+ "
                                     "bytes\\}, target_pe 1, source_addr 0x[0-9a-f]+, nelems 3, type QW\\) = "
                                     "SUCCESS\n"));
  EXPECT_THAT(ran.err, ContainsRegex("dmapp_put\\(.*target_pe 2, .*\\) = INVALID_PARAM\n"));
  EXPECT_THAT(ran.err, ContainsRegex("dmapp_sheap_malloc\\(size 64\\) = 0x[0-9a-f]+\n"));
  EXPECT_THAT(ran.err, ContainsRegex("dmapp_sheap_free\\(ptr 0x[0-9a-f]+\\)\n"));
  EXPECT_THAT(ran.err, ContainsRegex("dmapp_explain_error\\(error 0\\) = SUCCESS, message \"[^\"]+\"\n"));
}

TEST(CallLog, TellsTheCallsOfPortals4) {
  const Ran ran = orrery({"run", "--log", "portals4", kPortalsClient});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, ContainsRegex("orrery: pe 0: portals4: [0-9]+\\.[0-9]{6} PtlInit\\(\\) = PTL_OK\n"));
  EXPECT_THAT(ran.err,
              ContainsRegex("PtlMEAppend\\(ni_handle [0-9]+, pt_index [0-9]+, me \\{start 0x[0-9a-f]+, "
                            "length 8, .*match_bits 0x2a, ignore_bits 0x0, min_free 0\\}, .*\\) = "
                            "PTL_OK, me_handle [0-9]+\n"));
  EXPECT_THAT(ran.err, ContainsRegex("PtlEQWait\\(eq_handle [0-9]+\\) = PTL_OK, event \\{PUT, OK, from "
                                     "\\{.*\\}, match_bits 0x2a, rlength 8, hdr_data 0x7, pt_index"));
  EXPECT_THAT(ran.err, ContainsRegex("PtlEQGet\\(eq_handle [0-9]+\\) = PTL_EQ_EMPTY\n"));
  EXPECT_THAT(ran.err, HasSubstr("PtlEQGet: the same 9 times more\n"));
  EXPECT_THAT(ran.err, ContainsRegex("PtlEQAlloc\\(ni_handle [0-9]+, count 10\\) = PTL_NO_INIT\n"));
}

TEST(CallLog, TellsTheCallsOfPortals3) {
  const Ran ran = orrery({"run", "--log", "portals3", kPortals3Client});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, ContainsRegex("orrery: pe 0: portals3: [0-9]+\\.[0-9]{6} PtlInit\\(\\) = PTL_OK, "
                                     "max_interfaces 1\n"));
  EXPECT_THAT(ran.err,
              ContainsRegex("PtlMEMDPost\\(ni_handle [0-9]+, base [0-9]+, match_id \\{.*\\}, match_bits "
                            ".*, md \\{start 0x[0-9a-f]+, length 8, threshold 1, .*\\) = PTL_OK, "
                            "me_handle [0-9]+, md_handle [0-9]+\n"));
  EXPECT_THAT(ran.err, ContainsRegex("PtlEQWait\\(eq_handle [0-9]+\\) = PTL_OK, event \\{PUT_END, OK, from "
                                     "\\{.*\\}, pt_index 4, match_bits 0x2a, rlength 8, mlength 8, offset 0, "
                                     "hdr_data 0x9"));
  EXPECT_THAT(ran.err, ContainsRegex("PtlEQGet\\(eq_handle [0-9]+\\) = PTL_EQ_EMPTY\n"));
  EXPECT_THAT(ran.err, HasSubstr("PtlEQGet: the same 9 times more\n"));
  EXPECT_THAT(ran.err, ContainsRegex("PtlEQFree\\(eq_handle [0-9]+\\) = PTL_NO_INIT\n"));
}

TEST(CallLog, TellsTheCallsOfCci) {
  const Ran ran = orrery({"run", "--log", "cci", kCciClient});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err,
              ContainsRegex("orrery: pe 0: cci: [0-9]+\\.[0-9]{6} cci_init\\(abi_ver 2, flags 0x0\\) = "
                            "SUCCESS, caps 0\n"));
  EXPECT_THAT(ran.err,
              ContainsRegex("cci_connect\\(endpoint 0x[0-9a-f]+, uri \"nic://[0-9.:]+\", data "
                            "0x[0-9a-f]+, data_len 2, attribute RO, context NULL, flags 0x0, timeout "
                            "NULL\\) = SUCCESS\n"));
  EXPECT_THAT(ran.err, ContainsRegex("cci_get_event\\(endpoint 0x[0-9a-f]+\\) = EAGAIN\n"));
  EXPECT_THAT(ran.err, ContainsRegex("cci_get_event\\(.*\\) = SUCCESS, event 0x[0-9a-f]+ "
                                     "\\{CONNECT_REQUEST, 2 bytes, RO\\}\n"));
  EXPECT_THAT(ran.err, ContainsRegex("\\) = SUCCESS, event 0x[0-9a-f]+ \\{RECV, 5 bytes, connection 0x"));
  EXPECT_THAT(ran.err, ContainsRegex("cci_accept\\(event NULL, context NULL\\) = EINVAL\n"));
}

TEST(CallLog, SeveralInterfacesAtOnce) {
  const Ran ran = orrery({"run", "--log", "gni,portals4,dmapp", kDmappClient});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("dmapp_finalize() = SUCCESS\n"));
  EXPECT_THAT(ran.err, Not(HasSubstr("GNI_"))) << "DMAPP stands on the NIC, not on uGNI";
}

// What the map exports of an interface is in the log; but for `names`, which only say what a value is called.
void expect_all(const char* library, const char* map_file, const std::string& prefix, int expected,
                const std::set<std::string>& names = {}) {
  void* const log = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(log, nullptr) << dlerror();
  const std::string map = contents(map_file);
  int calls = 0;
  for (std::size_t at = map.find(" " + prefix); at != std::string::npos;
       at = map.find(" " + prefix, at + 1)) {
    const std::string name = map.substr(at + 1, map.find(';', at) - at - 1);
    if (names.contains(name)) continue;
    ++calls;
    EXPECT_NE(dlsym(log, name.c_str()), nullptr) << name;
  }
  EXPECT_EQ(calls, expected);
}

TEST(CallLog, StandsInFrontOfEveryCallOfTheLibraries) {
  expect_all(GNI_LOG, GNI_MAP, "GNI_", 113);
  expect_all(DMAPP_LOG, DMAPP_MAP, "dmapp_", 117);
  expect_all(PORTALS_LOG, PORTALS_MAP, "Ptl", 53, {"PtlToStr", "PtlEvToStr"});
  expect_all(PORTALS3_LOG, PORTALS3_MAP, "Ptl", 43);
  expect_all(CCI_LOG, CCI_MAP, "cci_", 21);
}

}  // namespace
}  // namespace orrery::tool::test
