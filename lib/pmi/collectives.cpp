// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "include/pmi/pmi.h"
#include "lib/pmi/shell.hpp"

#include <cstring>

namespace {

using orrery::pmi::Session;

std::string_view bytes_of(const void* data, int length) {
  return {static_cast<const char*>(data), static_cast<std::size_t>(length)};
}

bool bad_buffer(const void* data, int length) { return length < 0 || (data == nullptr && length > 0); }

// The session, when a collective may start now.
int ready(Session** session) {
  *session = Session::current();
  if (*session == nullptr) return PMI_ERR_INIT;
  return (*session)->in_barrier() ? PMI_FAIL : PMI_SUCCESS;
}

orrery::Picos barrier_time(const Session& session) {
  return session.machine_time(orrery::model::Collective::hardware_barrier, 0);
}

}  // namespace

extern "C" {

int PMI_Barrier(void) {
  Session* session = nullptr;
  const int problem = ready(&session);
  return problem != PMI_SUCCESS ? problem
                                : orrery::pmi::pmi_code(session->barrier(barrier_time(*session)).code());
}

int PMI_Ibarrier(void) {
  Session* session = nullptr;
  const int problem = ready(&session);
  return problem != PMI_SUCCESS ? problem : orrery::pmi::pmi_code(session->barrier_enter().code());
}

int PMI_Wait(void) {
  Session* session = Session::current();
  if (session == nullptr) return PMI_ERR_INIT;
  return orrery::pmi::pmi_code(session->barrier_leave(barrier_time(*session)).code());
}

int PMI_Bcast(void* buffer, int length) {
  Session* session = nullptr;
  const int problem = ready(&session);
  if (problem != PMI_SUCCESS) return problem;
  if (bad_buffer(buffer, length)) return PMI_ERR_INVALID_ARG;
  const orrery::Picos takes =
      session->machine_time(orrery::model::Collective::broadcast, static_cast<std::uint64_t>(length));
  const auto bytes = session->broadcast(bytes_of(buffer, length), takes);
  if (!bytes.ok()) return orrery::pmi::pmi_code(bytes.code());
  if (bytes.value().size() != static_cast<std::size_t>(length)) return PMI_ERR_INVALID_LENGTH;
  if (length > 0) std::memcpy(buffer, bytes.value().data(), bytes.value().size());
  return PMI_SUCCESS;
}

int PMI_Allgather(void* in, void* out, int length) {
  Session* session = Session::current();
  if (session == nullptr) return PMI_ERR_INIT;
  std::vector<int> lengths(static_cast<std::size_t>(session->size()), length);
  return PMI_Allgatherv(in, length, out, lengths.data());
}

int PMI_Allgatherv(void* in, int length, void* out, int* all_lengths) {
  Session* session = nullptr;
  const int problem = ready(&session);
  if (problem != PMI_SUCCESS) return problem;
  if (bad_buffer(in, length) || all_lengths == nullptr) return PMI_ERR_INVALID_ARG;
  // The caller's own piece may be empty where others' are not.
  for (int rank = 0; rank < session->size(); ++rank) {
    if (bad_buffer(out, all_lengths[rank])) return PMI_ERR_INVALID_ARG;
  }
  const auto pieces = session->gather(bytes_of(in, length), {});
  if (!pieces.ok()) return orrery::pmi::pmi_code(pieces.code());
  char* at = static_cast<char*>(out);
  for (const int rank : session->gather_order()) {
    const std::string& piece = pieces.value()[static_cast<std::size_t>(rank)];
    // Longer than announced would run over the caller's buffer.
    if (static_cast<int>(piece.size()) != all_lengths[rank]) return PMI_ERR_INVALID_LENGTH;
    if (!piece.empty()) std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  }
  return PMI_SUCCESS;
}

int PMI_Allgather_on_smp(void* in, void* out, int length) {
  Session* session = nullptr;
  const int problem = ready(&session);
  if (problem != PMI_SUCCESS) return problem;
  if (bad_buffer(in, length) || bad_buffer(out, length)) return PMI_ERR_INVALID_ARG;
  std::vector<int> members;
  for (const std::uint32_t rank :
       session->placement().clique_of(static_cast<std::uint32_t>(session->rank()))) {
    members.push_back(static_cast<int>(rank));
  }
  const auto pieces = session->gather(bytes_of(in, length), members);
  if (!pieces.ok()) return orrery::pmi::pmi_code(pieces.code());
  char* at = static_cast<char*>(out);
  // The job's order, restricted to this node.
  for (const int rank : session->gather_order()) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] != rank) continue;
      const std::string& piece = pieces.value()[i];
      if (piece.size() != static_cast<std::size_t>(length)) return PMI_ERR_INVALID_LENGTH;
      if (!piece.empty()) std::memcpy(at, piece.data(), piece.size());
      at += piece.size();
    }
  }
  return PMI_SUCCESS;
}

}  // extern "C"
