// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Every entry point before PMI_Init and with null arguments after it, in a table; launchers that libpmi does
// not speak to; and what a forked child may do. Also compiles the headers as C++.
#include "pmi_cray.h"

#include <cstdio>
#include <cstdlib>
#include <functional>

#include <sys/wait.h>
#include <unistd.h>

namespace {

int g_failures = 0;

void expect(int got, int wanted, const char* what) {
  if (got == wanted) return;
  std::fprintf(stderr, "%s: got %d, expected %d\n", what, got, wanted);
  ++g_failures;
}

struct Call {
  const char* name;
  std::function<int()> with_nulls;
  int after_init;  // what it returns then
};

const Call kCalls[] = {
    {"PMI_Get_size", [] { return PMI_Get_size(nullptr); }, PMI_ERR_INVALID_ARG},
    {"PMI_Get_rank", [] { return PMI_Get_rank(nullptr); }, PMI_ERR_INVALID_ARG},
    {"PMI_Get_universe_size", [] { return PMI_Get_universe_size(nullptr); }, PMI_ERR_INVALID_ARG},
    {"PMI_Get_appnum", [] { return PMI_Get_appnum(nullptr); }, PMI_ERR_INVALID_ARG},
    {"PMI_Get_app_size", [] { return PMI_Get_app_size(nullptr); }, PMI_ERR_INVALID_ARG},
    {"PMI_Get_rank_in_app", [] { return PMI_Get_rank_in_app(nullptr); }, PMI_ERR_INVALID_ARG},
    {"PMI_Get_nid", [] { return PMI_Get_nid(0, nullptr); }, PMI_ERR_INVALID_ARG},
    {"PMI_Get_nidlist_ptr", [] { return PMI_Get_nidlist_ptr(nullptr); }, PMI_ERR_INVALID_ARG},
    {"PMI_Get_clique_size", [] { return PMI_Get_clique_size(nullptr); }, PMI_ERR_INVALID_ARG},
    {"PMI_Get_clique_ranks", [] { return PMI_Get_clique_ranks(nullptr, 5); }, PMI_ERR_INVALID_ARG},
    {"PMI_Get_pes_on_smp", [] { return PMI_Get_pes_on_smp(nullptr, 5); }, PMI_ERR_INVALID_ARG},
    {"PMI_Get_numpes_on_smp", [] { return PMI_Get_numpes_on_smp(nullptr); }, PMI_ERR_INVALID_ARG},
    {"PMI_KVS_Get_my_name", [] { return PMI_KVS_Get_my_name(nullptr, 5); }, PMI_ERR_INVALID_ARG},
    {"PMI_KVS_Get_name_length_max", [] { return PMI_KVS_Get_name_length_max(nullptr); }, PMI_ERR_INVALID_ARG},
    {"PMI_KVS_Get_key_length_max", [] { return PMI_KVS_Get_key_length_max(nullptr); }, PMI_ERR_INVALID_ARG},
    {"PMI_KVS_Get_value_length_max", [] { return PMI_KVS_Get_value_length_max(nullptr); },
     PMI_ERR_INVALID_ARG},
    {"PMI_KVS_Put", [] { return PMI_KVS_Put(nullptr, nullptr, nullptr); }, PMI_ERR_INVALID_ARG},
    {"PMI_KVS_Commit", [] { return PMI_KVS_Commit(nullptr); }, PMI_ERR_INVALID_ARG},
    {"PMI_KVS_Get", [] { return PMI_KVS_Get(nullptr, nullptr, nullptr, 0); }, PMI_ERR_INVALID_ARG},
    {"PMI_Bcast", [] { return PMI_Bcast(nullptr, 1); }, PMI_ERR_INVALID_ARG},
    {"PMI_Bcast negative", [] { return PMI_Bcast(nullptr, -1); }, PMI_ERR_INVALID_ARG},
    {"PMI_Allgather", [] { return PMI_Allgather(nullptr, nullptr, 1); }, PMI_ERR_INVALID_ARG},
    {"PMI_Allgather negative", [] { return PMI_Allgather(nullptr, nullptr, -1); }, PMI_ERR_INVALID_ARG},
    {"PMI_Allgatherv", [] { return PMI_Allgatherv(nullptr, 0, nullptr, nullptr); }, PMI_ERR_INVALID_ARG},
    {"PMI_Allgatherv without room for the others",
     [] {
       int lengths[] = {4};
       return PMI_Allgatherv(nullptr, 0, nullptr, lengths);
     },
     PMI_ERR_INVALID_ARG},
    {"PMI_Allgather_on_smp", [] { return PMI_Allgather_on_smp(nullptr, nullptr, 1); }, PMI_ERR_INVALID_ARG},
    {"PMI_Wait", [] { return PMI_Wait(); }, PMI_FAIL},
    {"PMI_Barrier", [] { return PMI_Barrier(); }, PMI_SUCCESS},
    {"PMI2_Job_GetId", [] { return PMI2_Job_GetId(nullptr, 5); }, PMI2_ERR_INVALID_ARG},
    {"PMI2_KVS_Put", [] { return PMI2_KVS_Put(nullptr, nullptr); }, PMI2_ERR_INVALID_KEY},
    {"PMI2_KVS_Get", [] { return PMI2_KVS_Get(nullptr, 0, nullptr, nullptr, 0, nullptr); },
     PMI2_ERR_INVALID_KEY},
    {"PMI2_KVS_Get blank",
     [] {
       char value[8];
       int length = 0;
       return PMI2_KVS_Get(nullptr, 0, "a b", value, sizeof value, &length);
     },
     PMI2_ERR_INVALID_KEY},
    {"PMI2_Info_GetJobAttr", [] { return PMI2_Info_GetJobAttr(nullptr, nullptr, 0, nullptr); },
     PMI2_ERR_INVALID_ARG},
};

// Exit code of a child that calls PMI_Init with one more variable set.
int init_with(const char* name, const char* value) {
  const pid_t child = fork();
  if (child == 0) {
    setenv(name, value, 1);
    setenv("SLURM_NTASKS", "4", 1);
    int spawned = 7;
    const int rc = PMI_Init(&spawned);
    _exit(rc == PMI_FAIL && spawned == 7 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

int main() {
  setenv("ORRERY_JOB", "pmi-errors-test", 1);
  for (const Call& call : kCalls) expect(call.with_nulls(), PMI_ERR_INIT, call.name);
  expect(PMI_Initialized(nullptr), PMI_ERR_INVALID_ARG, "PMI_Initialized");
  expect(PMI_Finalize(), PMI_ERR_INIT, "PMI_Finalize before PMI_Init");
  expect(PMI_Abort(1, nullptr), PMI_ERR_INIT, "PMI_Abort before PMI_Init");
  expect(PMI_Get_version_info(nullptr, nullptr, nullptr), PMI_ERR_INVALID_ARG, "PMI_Get_version_info");
  expect(PMI2_Init(nullptr, nullptr, nullptr, nullptr), PMI2_ERR_INVALID_ARG, "PMI2_Init");

  expect(init_with("PMIX_NAMESPACE", "x"), 0, "PMI_Init under PMIx");
  expect(init_with("SLURM_PROCID", "1"), 0, "PMI_Init under srun without PMI");
  expect(init_with("PMI_FD", "many"), 0, "PMI_Init with a malformed PMI_FD");
  expect(init_with("PMI_FD", "900"), 0, "PMI_Init with a closed PMI_FD");

  expect(PMI_Init(nullptr), PMI_SUCCESS, "PMI_Init");
  for (const Call& call : kCalls) expect(call.with_nulls(), call.after_init, call.name);

  // A child is not its parent, and may become a process of its own when no launcher started it.
  const pid_t child = fork();
  if (child == 0) {
    int yes = -1;
    int rank = -1;
    expect(PMI_Initialized(&yes), PMI_SUCCESS, "PMI_Initialized in a child");
    expect(yes, PMI_FALSE, "the child is initialised");
    expect(PMI_Get_rank(&rank), PMI_ERR_INIT, "PMI_Get_rank in a child");
    expect(PMI_Init(nullptr), PMI_SUCCESS, "PMI_Init in a child");
    expect(PMI_Finalize(), PMI_SUCCESS, "PMI_Finalize in a child");
    _exit(g_failures == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  expect(status, 0, "the child");
  expect(PMI_Finalize(), PMI_SUCCESS, "PMI_Finalize");
  return g_failures == 0 ? 0 : 1;
}
