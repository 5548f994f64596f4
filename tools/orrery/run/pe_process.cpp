// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/run/pe_process.hpp"

#include "emu/base/unique_fd.hpp"
#include "emu/job/cores.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::tool {

namespace {

void set_variables(const PeStart& start, int pmi) {
  for (const char* name :
       {"PMI_PORT", "PMI_ID", "PMIX_NAMESPACE", "PMIX_RANK", "SLURM_PROCID", "SLURM_NTASKS",
        "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
        "PMI_GNI_PTAG", "PMI_GNI_COOKIE", "PMI_GNI_DEV_ID", "PMI_GNI_LOC_ADDR", "ORRERY_JOB_FD",
        "ORRERY_JOB_AT", "ORRERY_PMI_AT", "ORRERY_GNI_OF"}) {
    unsetenv(name);  // of a job around this one
  }
  const auto set = [](const char* name, std::uint64_t value) {
    setenv(name, std::to_string(value).c_str(), 1);
  };
  set("PMI_FD", static_cast<std::uint64_t>(pmi));
  set("PMI_RANK", start.rank);
  set("PMI_SIZE", start.size);
  set("MPI_LOCALNRANKS", start.local_size);
  set("MPI_LOCALRANKID", start.local_rank);
  set("ALPS_APP_PE", start.rank);
  for (const auto& [name, value] : start.variables) setenv(name.c_str(), value.c_str(), 1);
  if (start.directory >= 0) set("ORRERY_JOB_FD", static_cast<std::uint64_t>(start.directory));
}

[[noreturn]] void become(const ChildStart& start, const std::function<void()>& prepare, pid_t parent,
                         Guardian& guardian, int error_pipe) {
  setpgid(0, 0);
  // Told by the child: the parent may die before it comes out of fork, and what the program has started by
  // then would stay.
  guardian.watch(getpid());
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &start.signal_mask, nullptr);
  rlimit limit{};
  if (start.descriptor_limit != 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = start.descriptor_limit;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  int input = start.input;
  if (input < 0) input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input == STDIN_FILENO)
    fcntl(input, F_SETFD, 0);
  else if (input >= 0)
    dup2(input, STDIN_FILENO);
  if (start.out >= 0) dup2(start.out, STDOUT_FILENO);
  if (start.err >= 0) dup2(start.err, STDERR_FILENO);
  if (prepare) prepare();
  std::vector<char*> argv;
  for (const std::string& word : start.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(start.program.c_str(), argv.data());
  const int error = errno;
  [[maybe_unused]] const auto written = write(error_pipe, &error, sizeof error);
  _exit(127);
}

bool is_program(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const auto folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    const std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (is_program(candidate)) return candidate;
  }
  return "";
}

pid_t start_child(const ChildStart& start, const std::function<void()>& prepare, Guardian& guardian,
                  int* error) {
  *error = 0;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  const UniqueFd error_in(ends[0]);
  UniqueFd error_out(ends[1]);
  const pid_t self = getpid();
  const pid_t pid = fork();
  if (pid < 0) return -1;
  if (pid == 0) become(start, prepare, self, guardian, error_out.get());
  setpgid(pid, pid);  // here as well: parent or child is first
  error_out.reset();
  int why = 0;
  if (read(error_in.get(), &why, sizeof why) == sizeof why) *error = why;
  return pid;
}

pid_t start_pe_process(const PeStart& start, Guardian& guardian, int* error) {
  const auto prepare = [&start] {
    int pmi = fcntl(start.pmi, F_DUPFD, kInheritedFrom);
    if (pmi < 0) {
      pmi = start.pmi;
      fcntl(pmi, F_SETFD, 0);
    }
    if (start.directory >= 0) fcntl(start.directory, F_SETFD, 0);
    set_variables(start, pmi);
    if (start.core) (void)job::bind_to_core(*start.core);  // logged there; the PE runs unbound
  };
  return start_child(start, prepare, guardian, error);
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::FILE* file = std::fopen(fmt::format("/proc/self/task/{}/children", getpid()).c_str(), "re");
  if (file == nullptr) return found;
  long pid = 0;
  while (std::fscanf(file, "%ld", &pid) == 1) found.push_back(static_cast<pid_t>(pid));
  std::fclose(file);
  return found;
}

void reap_children(Guardian& guardian, const std::function<bool(pid_t)>& leads,
                   const std::function<void(pid_t, int)>& ended) {
  while (true) {
    siginfo_t info{};
    // Left a zombie at first: its pid, and so the number of its group, cannot be reused yet.
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    const pid_t pid = info.si_pid;
    const bool ours = leads(pid);
    if (ours) {
      kill(-pid, SIGKILL);
      guardian.release(pid);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) return;
    if (ours) ended(pid, status);
  }
}

void sweep_descendants(std::span<const pid_t> keep) {
  for (int round = 0; round < 100; ++round) {
    bool any = false;
    for (const pid_t pid : children()) {
      if (std::find(keep.begin(), keep.end(), pid) != keep.end()) continue;
      any = true;
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    if (!any) return;
  }
}

sigset_t take_signals(std::initializer_list<int> signals, sigset_t* before) {
  signal(SIGCHLD, SIG_DFL);
  sigset_t mine;
  sigemptyset(&mine);
  for (const int number : signals) {
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
    sigaddset(&mine, number);
  }
  sigprocmask(SIG_BLOCK, &mine, before);
  return mine;
}

int exit_code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

}  // namespace orrery::tool
