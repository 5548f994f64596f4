// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/version.hpp"
#include "include/pmi/pmi.h"
#include "lib/pmi/shell.hpp"

#include <algorithm>
#include <cstring>

namespace orrery::pmi {

int pmi_code(Errc code) {
  switch (code) {
    case Errc::ok:
      return PMI_SUCCESS;
    case Errc::no_memory:
      return PMI_ERR_NOMEM;
    case Errc::invalid_param:
      return PMI_ERR_INVALID_ARG;
    case Errc::size:
      return PMI_ERR_INVALID_LENGTH;
    case Errc::bounds:
      return PMI_ERR_INVALID_SIZE;
    case Errc::not_done:
    case Errc::no_resource:
    case Errc::invalid_state:
    case Errc::alignment:
    case Errc::permission:
    case Errc::no_match:
    case Errc::timeout:
    case Errc::illegal_op:
    case Errc::invalid_handle:
    case Errc::unreachable:
    case Errc::overrun:
    case Errc::corrupt:
    case Errc::unsupported:
    case Errc::system:
    case Errc::terminated:
    case Errc::protection:
    case Errc::duplicate:
      return PMI_FAIL;
  }
  return PMI_FAIL;
}

bool copy_out(std::string_view text, char* buffer, int length) {
  if (length < 0 || text.size() >= static_cast<std::size_t>(length)) return false;
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
  return true;
}

namespace {

// Stores `value(session)` in `out`.
template <typename Value>
int give(int* out, Value value) {
  Session* session = Session::current();
  if (session == nullptr) return PMI_ERR_INIT;
  if (out == nullptr) return PMI_ERR_INVALID_ARG;
  *out = value(*session);
  return PMI_SUCCESS;
}

std::vector<std::uint32_t> clique(const Session& session) {
  return session.placement().clique_of(static_cast<std::uint32_t>(session.rank()));
}

int clique_size(const Session& session) { return static_cast<int>(clique(session).size()); }

}  // namespace

}  // namespace orrery::pmi

using orrery::pmi::Session;

extern "C" {

int PMI_Init(int* spawned) {
  const auto session = Session::open();
  if (!session.ok()) return PMI_FAIL;
  if (spawned != nullptr) *spawned = PMI_FALSE;
  return PMI_SUCCESS;
}

int PMI_Initialized(PMI_BOOL* initialized) {
  if (initialized == nullptr) return PMI_ERR_INVALID_ARG;
  *initialized = Session::current() != nullptr ? PMI_TRUE : PMI_FALSE;
  return PMI_SUCCESS;
}

int PMI_Finalize(void) {
  if (Session::current() == nullptr) return PMI_ERR_INIT;
  return orrery::pmi::pmi_code(Session::close().code());
}

int PMI_Get_size(int* size) {
  return orrery::pmi::give(size, [](Session& s) { return s.size(); });
}
int PMI_Get_rank(int* rank) {
  return orrery::pmi::give(rank, [](Session& s) { return s.rank(); });
}
int PMI_Get_app_size(int* size) { return PMI_Get_size(size); }
int PMI_Get_rank_in_app(int* rank) { return PMI_Get_rank(rank); }

int PMI_Get_universe_size(int* size) {
  Session* session = Session::current();
  if (session == nullptr) return PMI_ERR_INIT;
  if (size == nullptr) return PMI_ERR_INVALID_ARG;
  const auto answer = session->universe_size();
  if (answer.ok()) *size = answer.value();
  return orrery::pmi::pmi_code(answer.code());
}

int PMI_Get_appnum(int* appnum) {
  Session* session = Session::current();
  if (session == nullptr) return PMI_ERR_INIT;
  if (appnum == nullptr) return PMI_ERR_INVALID_ARG;
  const auto answer = session->appnum();
  if (answer.ok()) *appnum = answer.value();
  return orrery::pmi::pmi_code(answer.code());
}

int PMI_Get_version_info(int* major, int* minor, int* revision) {
  if (major == nullptr || minor == nullptr || revision == nullptr) return PMI_ERR_INVALID_ARG;
  *major = orrery::kVersionMajor;
  *minor = orrery::kVersionMinor;
  *revision = orrery::kVersionPatch;
  return PMI_SUCCESS;
}

int PMI_Abort(int exit_code, const char error_msg[]) {
  Session* session = Session::current();
  if (session == nullptr) return PMI_ERR_INIT;
  session->abort(exit_code, error_msg);
}

int PMI_Get_clique_size(int* size) { return orrery::pmi::give(size, orrery::pmi::clique_size); }
int PMI_Get_numpes_on_smp(int* count) { return PMI_Get_clique_size(count); }
int PMI_Get_numpes_in_app_on_smp(int* count) { return PMI_Get_clique_size(count); }

int PMI_Get_clique_ranks(int ranks[], int length) {
  Session* session = Session::current();
  if (session == nullptr) return PMI_ERR_INIT;
  if (ranks == nullptr) return PMI_ERR_INVALID_ARG;
  const auto members = orrery::pmi::clique(*session);
  if (length < static_cast<int>(members.size())) return PMI_ERR_INVALID_LENGTH;
  std::copy(members.begin(), members.end(), ranks);
  return PMI_SUCCESS;
}
int PMI_Get_pes_on_smp(int pes[], int length) { return PMI_Get_clique_ranks(pes, length); }

int PMI_Get_nid(int rank, int* nid) {
  Session* session = Session::current();
  if (session == nullptr) return PMI_ERR_INIT;
  if (nid == nullptr || rank < 0 || rank >= session->size()) return PMI_ERR_INVALID_ARG;
  *nid = session->nids()[static_cast<std::size_t>(rank)];
  return PMI_SUCCESS;
}

int PMI_Get_nidlist_ptr(void** nidlist) {
  Session* session = Session::current();
  if (session == nullptr) return PMI_ERR_INIT;
  if (nidlist == nullptr) return PMI_ERR_INVALID_ARG;
  *nidlist = session->nids().data();
  return PMI_SUCCESS;
}

}  // extern "C"
