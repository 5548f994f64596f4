// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/pmi_line.hpp"
#include "include/pmi/pmi.h"
#include "lib/pmi/shell.hpp"

#include <cstring>

namespace orrery::pmi {

namespace {

// Characters of a key that are left for what put_bytes() appends.
constexpr std::size_t kKeyReserve = 8;

std::size_t key_length_max(const Session& session) { return session.limits().key - kKeyReserve; }

int give_length(int* out, std::size_t (*length)(const Session&)) {
  const Session* session = Session::current();
  if (session == nullptr) return PMI_ERR_INIT;
  if (out == nullptr) return PMI_ERR_INVALID_ARG;
  *out = static_cast<int>(length(*session)) + 1;
  return PMI_SUCCESS;
}

bool is_our_space(const Session& session, const char* name) {
  return name != nullptr && session.kvs_name() == name;
}

}  // namespace

int checked_key(const Session& session, const char* key) {
  if (key == nullptr || !job::is_pmi_token(key)) return PMI_ERR_INVALID_KEY;
  return std::strlen(key) > key_length_max(session) ? PMI_ERR_INVALID_KEY_LENGTH : PMI_SUCCESS;
}

int put_pair(Session& session, const char* key, const char* value) {
  if (session.in_barrier()) return PMI_FAIL;
  const int problem = checked_key(session, key);
  if (problem != PMI_SUCCESS) return problem;
  if (value == nullptr) return PMI_ERR_INVALID_VAL;
  if (std::strlen(value) > session.limits().value) return PMI_ERR_INVALID_VAL_LENGTH;
  return pmi_code(session.put(key, value).code());
}

Result<std::string> get_pair(Session& session, const char* key) {
  if (session.in_barrier()) return Errc::invalid_state;
  return session.get(key);
}

}  // namespace orrery::pmi

using orrery::pmi::Session;

extern "C" {

int PMI_KVS_Get_my_name(char kvsname[], int length) {
  const Session* session = Session::current();
  if (session == nullptr) return PMI_ERR_INIT;
  if (kvsname == nullptr) return PMI_ERR_INVALID_ARG;
  return orrery::pmi::copy_out(session->kvs_name(), kvsname, length) ? PMI_SUCCESS : PMI_ERR_INVALID_LENGTH;
}

int PMI_KVS_Get_name_length_max(int* length) {
  return orrery::pmi::give_length(length, [](const Session& s) { return s.limits().kvs_name; });
}
int PMI_KVS_Get_key_length_max(int* length) {
  return orrery::pmi::give_length(length, orrery::pmi::key_length_max);
}
int PMI_KVS_Get_value_length_max(int* length) {
  return orrery::pmi::give_length(length, [](const Session& s) { return s.limits().value; });
}

int PMI_KVS_Put(const char kvsname[], const char key[], const char value[]) {
  Session* session = Session::current();
  if (session == nullptr) return PMI_ERR_INIT;
  if (!orrery::pmi::is_our_space(*session, kvsname)) return PMI_ERR_INVALID_ARG;
  return orrery::pmi::put_pair(*session, key, value);
}

int PMI_KVS_Commit(const char kvsname[]) {
  const Session* session = Session::current();
  if (session == nullptr) return PMI_ERR_INIT;
  // Every put has been acknowledged by the launcher already.
  return orrery::pmi::is_our_space(*session, kvsname) ? PMI_SUCCESS : PMI_ERR_INVALID_ARG;
}

int PMI_KVS_Get(const char kvsname[], const char key[], char value[], int length) {
  Session* session = Session::current();
  if (session == nullptr) return PMI_ERR_INIT;
  if (!orrery::pmi::is_our_space(*session, kvsname)) return PMI_ERR_INVALID_ARG;
  if (value == nullptr) return PMI_ERR_INVALID_VAL;
  const int problem = orrery::pmi::checked_key(*session, key);
  if (problem != PMI_SUCCESS) return problem;
  const auto found = orrery::pmi::get_pair(*session, key);
  if (!found.ok()) return orrery::pmi::pmi_code(found.code());
  return orrery::pmi::copy_out(found.value(), value, length) ? PMI_SUCCESS : PMI_ERR_INVALID_LENGTH;
}

}  // extern "C"
