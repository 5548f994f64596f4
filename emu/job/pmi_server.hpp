// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/job/pmi_line.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::job {

// The server's side of the PMI-1 text wire for one job: the key-value space and the barrier. Does no I/O:
// bytes of a client go in, bytes for clients come out, so that it runs as well in a test as in `orrery run`.
//   1. One thread.
//   2. Whatever a client sends, the others are served; a client that breaks the grammar is answered no more.
//   3. A barrier ends when every PE has entered; entering is counted once per PE and barrier.
//   4. Programs of a PE may come one after the other: a client that has finalised may begin anew, and may
//      then put keys again.
// Usage: for (auto& out : server.receive(rank, bytes)) send(fd[out.rank], out.text);
class PmiServer {
 public:
  enum class Phase : std::uint8_t { silent, initialised, in_barrier, finalised, broken };
  struct Output {
    std::uint32_t rank;
    std::string text;
  };

  // REQUIRES: size > 0; the strings are PMI tokens.
  PmiServer(std::uint32_t size, std::string kvs_name, std::string_view process_mapping);

  // Bytes from the client of `rank`. REQUIRES: rank < size.
  std::vector<Output> receive(std::uint32_t rank, std::string_view bytes);

  // A new program speaks for `rank` from now on. An unfinished line of the one before is thrown away, and
  // phase() is silent again; a client that is broken stays so. REQUIRES: the rank is in no barrier.
  void start_over(std::uint32_t rank);

  Phase phase(std::uint32_t rank) const { return clients_[rank].phase; }
  // Barriers that `rank` has left. The one that it is in or that it has not reached has this number.
  std::uint64_t barriers_done(std::uint32_t rank) const { return clients_[rank].barriers_done; }
  bool anybody_in_barrier() const { return in_barrier_ > 0; }
  // Set once a client has asked for the job to be ended.
  struct Abort {
    std::uint32_t rank;
    int code;
  };
  const std::optional<Abort>& aborted() const { return aborted_; }
  // Why a client is broken: what it sent, cut to a line that can be shown.
  const std::string& complaint(std::uint32_t rank) const { return clients_[rank].complaint; }

 private:
  struct Client {
    PmiLineBuffer lines;
    Phase phase = Phase::silent;
    bool in_multi_line = false;  // inside mcmd ... endcmd
    std::uint32_t programs = 0;  // that have initialised
    std::uint64_t barriers_done = 0;
    std::string complaint;
  };
  void handle(std::uint32_t rank, const std::string& text, std::vector<Output>& out);
  void handle_put(std::uint32_t rank, const PmiLine& line, std::vector<Output>& out);
  void handle_get(std::uint32_t rank, const PmiLine& line, std::vector<Output>& out);
  void handle_barrier(std::uint32_t rank, std::vector<Output>& out);
  void break_client(std::uint32_t rank, std::string_view text);

  std::vector<Client> clients_;
  std::string kvs_name_;
  struct Entry {
    std::string value;
    std::uint32_t program;  // of its putter, counted as Client::programs
  };
  std::map<std::string, Entry, std::less<>> space_;
  std::uint32_t in_barrier_ = 0;
  std::optional<Abort> aborted_;
};

}  // namespace orrery::job
