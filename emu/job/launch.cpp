// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/launch.hpp"

#include "emu/base/log.hpp"
#include "emu/job/abstract_socket.hpp"
#include "emu/job/entrance.hpp"

#include <charconv>
#include <climits>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include <sys/socket.h>

namespace orrery::job {

namespace {

// Stores the first of `names` that is set in `out`; false (logged) when it is not a number.
bool read_number(Launch::GetEnv get_env, std::initializer_list<const char*> names, int* out) {
  for (const char* name : names) {
    const char* text = get_env(name);
    if (text == nullptr) continue;
    int number = 0;
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, number);
    if (error == std::errc{} && stop == end && stop != text && number >= 0) {
      *out = number;
      return true;
    }
    log::error("{}={} is not accepted: expected a number 0..{}", name, text, INT_MAX);
    return false;
  }
  return true;
}

// The server's name in its address: "3131572224.0;tcp4://127.0.0.1:41133". One address a version of the
// protocol, all of the same server. Processes that one of them starts later (MPI_Comm_spawn) have the same.
std::string pmix_server(Launch::GetEnv get_env) {
  for (const char* name : {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI21",
                           "PMIX_SERVER_URI2"}) {
    if (const char* const address = get_env(name)) return std::string(address, std::strcspn(address, ";"));
  }
  return {};
}

// A process of a larger job that lost what it would speak to the launcher by: a wrapper closed it, or the
// launcher speaks otherwise. False (logged) when a variable holds no number.
bool find_unserved(Launch::GetEnv get_env, Launch& launch) {
  if (get_env("PMI_PORT") != nullptr) {
    launch.kind = LaunchKind::unserved;
    launch.sign = "PMI_PORT";
    return true;
  }
  constexpr struct {
    const char *size, *rank;
  } kNames[] = {{"PMI_SIZE", "PMI_RANK"}, {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}};
  for (const auto& names : kNames) {
    int size = 1;
    if (!read_number(get_env, {names.size}, &size)) return false;
    if (size <= 1) continue;
    launch.kind = LaunchKind::unserved;
    launch.sign = names.size;
    launch.size = size;
    return read_number(get_env, {names.rank}, &launch.rank);
  }
  return true;
}

std::optional<pid_t> maker_of_socket(int fd) {
  int domain = 0;
  socklen_t length = sizeof domain;
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 || domain != AF_UNIX) return std::nullopt;
  const auto peer = peer_of(fd);
  return peer ? std::optional(peer->pid) : std::nullopt;
}

std::optional<std::string> variable_of_process(pid_t pid, const char* name) {
  std::FILE* const file = std::fopen(fmt::format("/proc/{}/environ", pid).c_str(), "re");
  if (file == nullptr) return std::nullopt;
  std::string all;
  char bytes[4096];
  for (std::size_t got = 0; (got = std::fread(bytes, 1, sizeof bytes, file)) > 0;) all.append(bytes, got);
  std::fclose(file);
  const std::string head = std::string(name) + "=";
  for (std::size_t at = 0; at < all.size();) {
    const std::string_view one(all.c_str() + at);
    if (one.starts_with(head)) return std::string(one.substr(head.size()));
    at += one.size() + 1;
  }
  return std::string();
}

// Whether PMI_FD is that of a launcher around the one that set PMIX_NAMESPACE.
bool pmi_is_outer(const Launch& launch, const char* pmix, const Launch::Probe& probe) {
  const auto server = probe.maker_of(launch.pmi_fd);
  if (!server) return true;
  if (*server <= 0) return false;
  const auto around_server = probe.variable_of(*server, "PMIX_NAMESPACE");
  return around_server && *around_server != pmix;
}

// Whether this process was started by another launcher inside a PE of `orrery run`, which hands on none of
// the variables that are looked at here, and whose PMI_FD it made itself.
bool inside_a_pe(Launch::GetEnv get_env, const Launch& launch, pid_t launcher, int slurm_tasks,
                 const Launch::Probe& probe) {
  if (get_env("PMIX_NAMESPACE") != nullptr || slurm_tasks > 1) return true;
  const auto server = probe.maker_of(launch.pmi_fd);
  return server && *server > 0 && *server != launcher;
}

}  // namespace

constinit const Launch::Probe Launch::kOfProcess{maker_of_socket, variable_of_process};

Result<Launch> Launch::detect(GetEnv get_env, const Probe& probe) {
  Launch launch;
  int slurm_tasks = 1;
  bool good = read_number(get_env, {"ORRERY_JOB_FD"}, &launch.directory_fd) &&
              read_number(get_env, {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"}, &launch.local_size) &&
              read_number(get_env, {"PMI_FD"}, &launch.pmi_fd);
  if (get_env("SLURM_PROCID") != nullptr)
    good = good && read_number(get_env, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, &slurm_tasks);
  if (const char* const at = get_env("ORRERY_JOB_AT")) {
    const auto entrance = EntranceName::parse(at);
    if (!entrance) {
      log::error("ORRERY_JOB_AT={} is not accepted: expected what `orrery run` sets", at);
      return Errc::invalid_param;
    }
    if (good && inside_a_pe(get_env, launch, entrance->launcher, slurm_tasks, probe)) {
      launch.directory_fd = -1;
      if (get_env("PMIX_NAMESPACE") != nullptr || slurm_tasks > 1) launch.pmi_fd = -1;
    } else {
      launch.entrance = at;
      if (launch.directory_fd < 0) launch.directory_fd = INT_MAX;
    }
  } else if (const char* const pmix = get_env("PMIX_NAMESPACE")) {
    if (launch.pmi_fd >= 0 && pmi_is_outer(launch, pmix, probe)) launch.pmi_fd = -1;
  }
  if (const char* const at = get_env("ORRERY_PMI_AT"); at != nullptr && launch.pmi_fd >= 0) {
    if (!EntranceName::parse(at)) {
      log::error("ORRERY_PMI_AT={} is not accepted: expected what `orrery run --hosts` sets", at);
      return Errc::invalid_param;
    }
    launch.pmi_at = at;
  }
  if (launch.pmi_fd >= 0) {
    launch.kind = LaunchKind::pmi1;
    good = good && read_number(get_env, {"PMI_RANK"}, &launch.rank) &&
           read_number(get_env, {"PMI_SIZE"}, &launch.size);
  } else if (get_env("PMIX_NAMESPACE") != nullptr) {
    launch.kind = LaunchKind::pmix;
    launch.server = pmix_server(get_env);
    good = good && read_number(get_env, {"PMIX_RANK", "OMPI_COMM_WORLD_RANK"}, &launch.rank) &&
           read_number(get_env, {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}, &launch.size);
  } else if (slurm_tasks > 1) {
    launch.kind = LaunchKind::slurm;
    launch.size = slurm_tasks;
    good = good && read_number(get_env, {"SLURM_PROCID"}, &launch.rank);
  }
  if (good && launch.kind == LaunchKind::singleton) good = find_unserved(get_env, launch);
  if (!good) return Errc::invalid_param;
  if (launch.kind == LaunchKind::singleton) {
    launch.rank = 0;
    launch.size = 1;
  }
  return launch;
}

std::optional<std::string> Launch::pmi_problem() const {
  switch (kind) {
    case LaunchKind::singleton:
    case LaunchKind::pmi1:
    case LaunchKind::pmix:
      return std::nullopt;
    case LaunchKind::slurm:
      return "started by srun without PMI (SLURM_PROCID is set, PMI_FD is not): start the program with "
             "'srun --mpi=pmi2', 'srun --mpi=pmix' or 'orrery run'";
    case LaunchKind::unserved:
      if (sign == "PMI_PORT")
        return "started by a launcher that serves PMI by PMI_PORT alone: start the program without its "
               "option "
               "-pmi-port, or with 'orrery run'";
      return sign +
             " says that this is one of several processes, but PMI_FD and PMIX_NAMESPACE are not set: what "
             "stands between launcher and program must hand them on";
  }
  return "started by an unknown launcher";
}

}  // namespace orrery::job
