// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/pmi_server.hpp"

#include "emu/base/check.hpp"

#include <fmt/core.h>

namespace orrery::job {

namespace {
// Some 140 MB at the longest: a PE that puts without end fills the launcher's memory no further.
constexpr std::size_t kMostPairs = std::size_t{1} << 17;
}  // namespace

PmiServer::PmiServer(std::uint32_t size, std::string kvs_name, std::string_view process_mapping)
    : clients_(size), kvs_name_(std::move(kvs_name)) {
  ORRERY_CHECK(size > 0 && is_pmi_token(kvs_name_), "{} PEs, key-value space {}", size, kvs_name_);
  // One that no client has room for is as good as none: they ask each PE where it is then.
  if (process_mapping.size() < kPmiValueMax)
    space_.emplace("PMI_process_mapping", Entry{std::string(process_mapping), UINT32_MAX});
}

void PmiServer::start_over(std::uint32_t rank) {
  Client& client = clients_[rank];
  client.lines = {};
  client.in_multi_line = false;
  if (client.phase != Phase::broken) client.phase = Phase::silent;
}

std::vector<PmiServer::Output> PmiServer::receive(std::uint32_t rank, std::string_view bytes) {
  std::vector<Output> out;
  Client& client = clients_[rank];
  if (client.phase == Phase::broken) return out;
  if (!client.lines.push(bytes)) {
    break_client(rank, fmt::format("a line of more than {} bytes", kPmiLineMax));
    return out;
  }
  while (client.phase != Phase::broken) {
    const auto line = client.lines.pop();
    if (!line) break;
    handle(rank, *line, out);
  }
  return out;
}

void PmiServer::break_client(std::uint32_t rank, std::string_view text) {
  Client& client = clients_[rank];
  if (client.phase == Phase::in_barrier) --in_barrier_;
  client.phase = Phase::broken;
  for (const char c : text.substr(0, 80)) client.complaint += c >= ' ' && c <= '~' ? c : '?';
}

void PmiServer::handle(std::uint32_t rank, const std::string& text, std::vector<Output>& out) {
  Client& client = clients_[rank];
  const auto reply = [&](std::string line) { out.push_back({rank, std::move(line)}); };
  if (client.in_multi_line) {
    if (text != "endcmd") return;
    client.in_multi_line = false;
    return reply(
        format_pmi_line({{"cmd", "spawn_result"}, {"rc", "-1"}, {"msg", "spawning_is_not_supported"}}));
  }
  const auto parsed = PmiLine::parse(text);
  if (!parsed.ok() || parsed.value().command().empty()) return break_client(rank, text);
  const PmiLine& line = parsed.value();
  const auto command = line.command();
  if (line.get("mcmd")) {
    client.in_multi_line = true;
  } else if (command == "init") {
    const bool good = line.number("pmi_version") == 1;
    if (good && client.phase != Phase::in_barrier) {
      client.phase = Phase::initialised;
      ++client.programs;
    }
    reply(format_pmi_line({{"cmd", "response_to_init"},
                           {"pmi_version", "1"},
                           {"pmi_subversion", "1"},
                           {"rc", good ? "0" : "-1"}}));
  } else if (client.phase == Phase::silent || (client.phase == Phase::in_barrier && command == "finalize")) {
    // Nothing but init may come first, and a PE that is counted in a barrier comes out before it goes.
    break_client(rank, text);
  } else if (command == "get_maxes") {
    reply(fmt::format("cmd=maxes kvsname_max={} keylen_max={} vallen_max={}\n", kPmiKvsNameMax, kPmiKeyMax,
                      kPmiValueMax));
  } else if (command == "get_appnum") {
    reply("cmd=appnum appnum=0\n");
  } else if (command == "get_my_kvsname") {
    reply(format_pmi_line({{"cmd", "my_kvsname"}, {"kvsname", kvs_name_}}));
  } else if (command == "get_universe_size") {
    reply(fmt::format("cmd=universe_size size={}\n", clients_.size()));
  } else if (command == "put") {
    handle_put(rank, line, out);
  } else if (command == "get") {
    handle_get(rank, line, out);
  } else if (command == "barrier_in") {
    handle_barrier(rank, out);
  } else if (command == "finalize") {
    client.phase = Phase::finalised;
    reply("cmd=finalize_ack\n");
  } else if (command == "abort") {
    if (!aborted_) aborted_ = Abort{rank, line.number("exitcode").value_or(1)};
  } else {
    reply(fmt::format("cmd={}_result rc=-1 msg=not_supported\n", command.substr(0, 64)));
  }
}

void PmiServer::handle_put(std::uint32_t rank, const PmiLine& line, std::vector<Output>& out) {
  const auto key = line.get("key");
  const auto value = line.get("value");
  std::string_view problem;
  if (line.get("kvsname") != kvs_name_) {
    problem = "unknown_kvs";
  } else if (!key || key->empty() || key->size() > kPmiKeyMax) {
    problem = "key_length";
  } else if (!value || value->size() > kPmiValueMax) {
    problem = "value_length";
  } else if (space_.size() >= kMostPairs && !space_.contains(std::string(*key))) {
    problem = "kvs_has_131072_keys_which_is_the_limit";
  } else {
    const std::uint32_t program = clients_[rank].programs;
    const auto [at, is_new] = space_.try_emplace(std::string(*key), Entry{std::string(*value), program});
    // An earlier program's key is this one's to put.
    if (!is_new && at->second.program >= program)
      problem = "duplicate_key";
    else if (!is_new)
      at->second = {std::string(*value), program};
  }
  out.push_back({rank, format_pmi_line({{"cmd", "put_result"},
                                        {"rc", problem.empty() ? "0" : "-1"},
                                        {"msg", problem.empty() ? "success" : problem}})});
}

void PmiServer::handle_get(std::uint32_t rank, const PmiLine& line, std::vector<Output>& out) {
  const auto key = line.get("key");
  const auto found = key && line.get("kvsname") == kvs_name_ ? space_.find(*key) : space_.end();
  if (found == space_.end()) {
    out.push_back({rank, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n"});
    return;
  }
  out.push_back(
      {rank, format_pmi_line(
                 {{"cmd", "get_result"}, {"rc", "0"}, {"msg", "success"}, {"value", found->second.value}})});
}

void PmiServer::handle_barrier(std::uint32_t rank, std::vector<Output>& out) {
  Client& client = clients_[rank];
  if (client.phase != Phase::initialised) return break_client(rank, "barrier_in at a wrong time");
  client.phase = Phase::in_barrier;
  if (++in_barrier_ < clients_.size()) return;
  in_barrier_ = 0;
  for (std::uint32_t other = 0; other < clients_.size(); ++other) {
    clients_[other].phase = Phase::initialised;
    ++clients_[other].barriers_done;
    out.push_back({other, "cmd=barrier_out\n"});
  }
}

}  // namespace orrery::job
