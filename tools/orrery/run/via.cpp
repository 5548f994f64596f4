// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/run/via.hpp"

#include "emu/job/domain_list.hpp"
#include "tools/orrery/run/pe_process.hpp"
#include "tools/orrery/run/run_checks.hpp"
#include "tools/orrery/subcommand.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace orrery::tool {

namespace {

namespace fs = std::filesystem;

constexpr const char* kRuntime = "liborrery.so.0";

// Where this Orrery's libraries are, seen from this program: installed, or in the tree that built it. The
// first folder has liborrery.so in it. Empty: nowhere.
std::vector<fs::path> library_folders() {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path installed = (here / ORRERY_LIBRARIES_FROM_TOOL).lexically_normal();
  if (fs::exists(installed / kRuntime, error)) return {installed};
  const fs::path built = (here / ORRERY_BUILT_LIBRARIES_FROM_TOOL).lexically_normal();
  std::vector<fs::path> folders{built.parent_path() / "emu"};
  if (!fs::exists(folders[0] / kRuntime, error)) return {};
  for (const auto& entry : fs::directory_iterator(built, error)) {
    if (entry.is_directory(error)) folders.push_back(entry.path());
  }
  std::sort(folders.begin() + 1, folders.end());
  return folders;
}

std::string with_others(std::string first, const char* variable) {
  const char* const others = std::getenv(variable);
  return others == nullptr || *others == 0 ? first : first + ":" + others;
}

void set_unless_set(const char* name, const char* value) { setenv(name, value, 0); }

// Sets Open MPI's options in the environment, for mpirun and its processes. A variable that the user has set
// stays, and an option on mpirun's command line goes before both. The transports that are left out (^...)
// would carry messages past the NIC.
void set_up_open_mpi(bool has_virtual_time) {
  set_unless_set("OMPI_MCA_rmaps_base_oversubscribe", "1");
  set_unless_set("OMPI_MCA_mpi_yield_when_idle", "1");
  set_unless_set("OMPI_MCA_pml", "^ucx");
  set_unless_set("OMPI_MCA_mtl", "^ofi,psm,psm2");
  set_unless_set("OMPI_MCA_btl", "^vader,sm,smcuda,tcp,openib,uct,ofi,usnic");
  if (has_virtual_time) set_unless_set("OMPI_MCA_mpi_event_tick_rate", "1");
}

volatile pid_t g_launcher = 0;

// A launcher is told once, however often this process is (timeout(1) sends a signal to its child and to its
// group): mpirun, told again, ends at once and leaves its ranks behind. Told after that it is by intent.
void hand_on(int signal) {
  constexpr std::int64_t kOnce = 1'000'000'000;  // ns
  static volatile std::int64_t last = -kOnce;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t at = now.tv_sec * kOnce + now.tv_nsec;
  if (at - last < kOnce) return;
  last = at;
  if (g_launcher > 0) kill(g_launcher, signal);
}

}  // namespace

std::string read_launcher(const std::string& words, std::vector<std::string>* launcher) {
  std::istringstream in(words);
  for (std::string word; in >> word;) launcher->push_back(word);
  if (launcher->empty()) return "--via names no launcher: expected one, as mpirun, with its own options";
  if (find_program(launcher->front()).empty()) {
    return fmt::format("--via {} cannot be run: expected a launcher, as mpirun, {}", launcher->front(),
                       why_not_run(launcher->front()));
  }
  return {};
}

int run_via(const ViaOptions& options) {
  const std::vector<fs::path> folders = library_folders();
  if (folders.empty()) return usage_error(fmt::format("--via: {} is not beside this program", kRuntime));
  std::string path;
  for (const fs::path& folder : folders) path += (path.empty() ? "" : ":") + folder.string();

  std::vector<std::string> words = options.launcher;
  words.insert(words.end(), {"-n", std::to_string(options.pes), "env"});
  // Of a job around this one.
  for (const char* name : {"PMI_GNI_DEV_ID", "PMI_GNI_LOC_ADDR", "ORRERY_JOB_FD", "ORRERY_JOB_AT",
                           "ORRERY_PMI_AT", "ORRERY_GNI_OF"})
    words.insert(words.end(), {"-u", name});
  const auto domains = job::domain_variables(job::make_domains(), 0);
  words.push_back("PMI_GNI_PTAG=" + domains.ptag);
  words.push_back("PMI_GNI_COOKIE=" + domains.cookie);
  words.push_back("LD_LIBRARY_PATH=" + with_others(path, "LD_LIBRARY_PATH"));
  // A log's libraries stand before the runtime.
  std::string preload = with_others("", "LD_PRELOAD");
  for (const auto& [name, value] : options.variables) {
    if (name == "LD_PRELOAD")
      preload = value;
    else
      words.push_back(name + "=" + value);
  }
  if (options.has_virtual_time)
    preload = (preload.empty() ? "" : preload + ":") + (folders[0] / kRuntime).string();
  if (!preload.empty()) words.push_back("LD_PRELOAD=" + preload);
  words.insert(words.end(), options.command.begin(), options.command.end());

  set_up_open_mpi(options.has_virtual_time);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  const pid_t self = getpid();
  // A signal that comes before hand_on() is in place waits for it.
  sigset_t told;
  sigset_t before;
  sigemptyset(&told);
  sigaddset(&told, SIGTERM);
  sigaddset(&told, SIGHUP);
  sigprocmask(SIG_BLOCK, &told, &before);
  const pid_t pid = fork();
  if (pid == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self) _exit(1);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  if (pid < 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    std::fprintf(stderr, "orrery: %s cannot be started: %s\n", argv[0], std::strerror(errno));
    return kExitFailure;
  }
  g_launcher = pid;
  // A terminal's own signals reach the launcher as well.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  std::signal(SIGTERM, hand_on);
  std::signal(SIGHUP, hand_on);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  int status = 0;
  while (waitpid(pid, &status, 0) != pid) {
    if (errno != EINTR) return kExitFailure;
  }
  return exit_code_of(status);
}

}  // namespace orrery::tool
