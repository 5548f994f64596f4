// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "include/pmi/pmi2.h"

#include "include/pmi/pmi.h"
#include "lib/pmi/shell.hpp"

#include <cstring>
#include <string>

using orrery::pmi::Session;

extern "C" {

int PMI2_Init(int* spawned, int* size, int* rank, int* appnum) {
  if (size == nullptr || rank == nullptr) return PMI2_ERR_INVALID_ARG;
  const int rc = PMI_Init(spawned);
  if (rc != PMI_SUCCESS) return rc;
  PMI_Get_size(size);
  PMI_Get_rank(rank);
  return appnum == nullptr ? PMI2_SUCCESS : PMI_Get_appnum(appnum);
}

int PMI2_Initialized(void) {
  PMI_BOOL initialized = PMI_FALSE;
  return PMI_Initialized(&initialized) == PMI_SUCCESS && initialized == PMI_TRUE ? 1 : 0;
}
int PMI2_Finalize(void) { return PMI_Finalize(); }
int PMI2_Abort(int flag, const char msg[]) {
  (void)flag;
  return PMI_Abort(1, msg);
}

int PMI2_Job_GetId(char jobid[], int jobid_size) { return PMI_KVS_Get_my_name(jobid, jobid_size); }

int PMI2_KVS_Put(const char key[], const char value[]) {
  Session* session = Session::current();
  return session == nullptr ? PMI2_ERR_INIT : orrery::pmi::put_pair(*session, key, value);
}

int PMI2_KVS_Fence(void) { return PMI_Barrier(); }

int PMI2_KVS_Get(const char* jobid, int src_pmi_id, const char key[], char value[], int maxvalue,
                 int* vallen) {
  (void)src_pmi_id;  // a hint where to look first
  Session* session = Session::current();
  if (session == nullptr) return PMI2_ERR_INIT;
  if (jobid != nullptr && session->kvs_name() != jobid) return PMI2_ERR_INVALID_ARG;
  const int problem = orrery::pmi::checked_key(*session, key);
  if (problem != PMI_SUCCESS) return problem;
  if (value == nullptr || maxvalue < 1 || vallen == nullptr) return PMI2_ERR_INVALID_ARG;
  const auto found = orrery::pmi::get_pair(*session, key);
  if (!found.ok()) return orrery::pmi::pmi_code(found.code());
  const int length = static_cast<int>(found.value().size());
  if (orrery::pmi::copy_out(found.value(), value, maxvalue)) {
    *vallen = length;
    return PMI2_SUCCESS;
  }
  std::memcpy(value, found.value().data(), static_cast<std::size_t>(maxvalue - 1));
  value[maxvalue - 1] = '\0';
  *vallen = -length;
  return PMI2_ERR_INVALID_VAL_LENGTH;
}

int PMI2_Info_GetJobAttr(const char name[], char value[], int valuelen, int* found) {
  Session* session = Session::current();
  if (session == nullptr) return PMI2_ERR_INIT;
  if (name == nullptr || value == nullptr || found == nullptr) return PMI2_ERR_INVALID_ARG;
  std::string text;
  if (std::strcmp(name, "PMI_process_mapping") == 0) {
    text = session->placement().process_mapping();
  } else if (std::strcmp(name, "universeSize") == 0) {
    const auto size = session->universe_size();
    if (!size.ok()) return orrery::pmi::pmi_code(size.code());
    text = std::to_string(size.value());
  } else {
    *found = 0;
    return PMI2_SUCCESS;
  }
  if (!orrery::pmi::copy_out(text, value, valuelen)) return PMI2_ERR_INVALID_LENGTH;
  *found = 1;
  return PMI2_SUCCESS;
}

}  // extern "C"
