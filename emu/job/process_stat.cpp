// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/process_stat.hpp"

#include "emu/base/own_descriptor.hpp"
#include "emu/base/unique_fd.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace orrery::job {

ProcessStat parse_process_stat(std::string_view text) {
  // "pid (name) state ppid ...": the name may hold spaces and parentheses, so count from the last ')'.
  const auto name_end = text.rfind(')');
  if (name_end == std::string_view::npos || text.size() < name_end + 3) return {};
  ProcessStat stat;
  text.remove_prefix(name_end + 2);
  stat.state = text[0];
  // state is field 3, the start time field 22.
  for (int field = 3; field < 22; ++field) {
    const auto space = text.find(' ');
    if (space == std::string_view::npos) return {};
    text.remove_prefix(space + 1);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), stat.start_time);
  if (error != std::errc{}) return {};
  stat.exists = stat.state != 'Z' && stat.state != 'X';
  return stat;
}

namespace {

ProcessStat read_stat(const char* path) {
  constexpr ProcessStat kUnknown{.exists = true, .known = false};
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  // EMFILE, ENFILE, ENOMEM and the like say nothing of that process.
  if (!fd.valid()) return errno == ENOENT || errno == ESRCH ? ProcessStat{} : kUnknown;
  std::array<char, 1024> text;
  const auto length = ::read(fd.get(), text.data(), text.size());
  if (length < 0 && errno != ESRCH) return kUnknown;
  if (length <= 0) return {};
  return parse_process_stat({text.data(), static_cast<std::size_t>(length)});
}

// Without /proc: whether there is such a process that has not ended, but not which one it is.
ProcessStat ask_kernel(pid_t pid) {
  constexpr ProcessStat kThere{.exists = true, .known = false};
  const UniqueFd fd(own_descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))));
  if (!fd.valid()) return errno != ESRCH && (kill(pid, 0) == 0 || errno == EPERM) ? kThere : ProcessStat{};
  pollfd ended{.fd = fd.get(), .events = POLLIN, .revents = 0};
  return poll(&ended, 1, 0) > 0 ? ProcessStat{} : kThere;
}

}  // namespace

ProcessStat process_stat(pid_t pid) {
  // Without libfmt's strings: a service thread takes nothing of the heap.
  std::array<char, 32> path{};
  fmt::format_to_n(path.data(), path.size() - 1, "/proc/{}/stat", pid);
  const ProcessStat stat = read_stat(path.data());
  // A name that is not there may mean that /proc is not mounted, or hides other users' processes.
  return stat.exists || stat.state != '?' ? stat : ask_kernel(pid);
}

bool is_stopped(pid_t pid) {
  std::error_code error;
  bool any = false;
  for (std::filesystem::directory_iterator task(fmt::format("/proc/{}/task", pid), error), end;
       !error && task != end; task.increment(error)) {
    const ProcessStat stat = read_stat((task->path().string() + "/stat").c_str());
    if (!stat.exists) continue;  // a thread that has ended
    // One that a debugger holds ('t') may stand at the entry of a system call.
    if (stat.state != 'T') return false;
    any = true;
  }
  return any && !error;
}

namespace {

// What /proc/PID/task/TID/status says of a thread. How often it has left a processor tells two sleeps apart.
struct Sleep {
  int thread = 0;
  bool known = false, asleep = false;
  bool is_ours = false;  // a thread of the runtime's own, by its name
  std::uint64_t switches = 0;
  bool operator==(const Sleep&) const = default;
};

Sleep sleep_of(int thread, const std::string& path) {
  Sleep sleep{.thread = thread};
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> buffer;
  const auto length = fd.valid() ? ::read(fd.get(), buffer.data(), buffer.size()) : -1;
  if (length <= 0) return sleep;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(length));
  const auto after = [&](std::string_view name) {
    const auto at = text.find(name);
    return at == std::string_view::npos ? std::string_view{} : text.substr(at + name.size());
  };
  const auto number = [](std::string_view digits) {
    std::uint64_t value = 0;
    (void)std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  };
  sleep.known = true;
  sleep.is_ours = text.starts_with("Name:\torrery-");
  const std::string_view state = after("\nState:\t");
  sleep.asleep = state.starts_with('S') || state.starts_with('Z');  // it has ended and will not run
  sleep.switches =
      number(after("\nvoluntary_ctxt_switches:\t")) + number(after("\nnonvoluntary_ctxt_switches:\t"));
  return sleep;
}

// Whose threads are looked at: all, or all but the runtime's own.
enum class Whose : std::uint8_t { all, others };

// Adds the threads of that process but `but`. False: one of them does not sleep, or /proc does not show them.
bool add_sleeps(const std::string& process, int but, bool must_be_known, Whose whose,
                std::vector<Sleep>& sleeps) {
  std::error_code error;
  for (std::filesystem::directory_iterator task(process + "/task", error), end; !error && task != end;
       task.increment(error)) {
    const std::string name = task->path().filename().string();
    int thread = 0;
    (void)std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread == but) continue;
    const Sleep sleep = sleep_of(thread, task->path().string() + "/status");
    if (whose == Whose::others && sleep.is_ours) continue;
    if (!sleep.known ? must_be_known && read_stat((task->path().string() + "/stat").c_str()).exists
                     : !sleep.asleep)
      return false;
    if (sleep.known) sleeps.push_back(sleep);
  }
  return !error || !must_be_known;
}

// The children of this process, where /proc tells of them.
std::vector<pid_t> children() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end; !error && task != end;
       task.increment(error)) {
    const UniqueFd fd(::open((task->path().string() + "/children").c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 4096> buffer;
    const auto length = fd.valid() ? ::read(fd.get(), buffer.data(), buffer.size()) : -1;
    const char* const behind = buffer.data() + std::max<decltype(length)>(length, 0);
    pid_t pid = 0;
    for (const char* at = buffer.data(); at < behind; ++at) {
      const auto [next, bad] = std::from_chars(at, behind, pid);
      if (bad != std::errc()) break;
      pids.push_back(pid);
      at = next;
    }
  }
  return pids;
}

// The other threads of this process, and those of `and_of`, at one moment at which all slept.
// Seen one after another, a thread that wakes one that was looked at before, and goes to sleep itself before
// it is looked at, would be missed. So all are looked at twice: those that slept both times and did not run
// in between slept at one time.
std::optional<std::vector<Sleep>> others_asleep(const std::vector<pid_t>& and_of, Whose whose) {
  const auto add_all = [&](std::vector<Sleep>& sleeps) {
    const auto add = [&](pid_t pid) {
      return add_sleeps(fmt::format("/proc/{}", pid), 0, false, whose, sleeps);
    };
    return std::ranges::all_of(and_of, add) &&
           add_sleeps("/proc/self", static_cast<int>(syscall(SYS_gettid)), true, whose, sleeps);
  };
  std::vector<Sleep> once, again;
  if (!add_all(once) || !add_all(again) || once != again) return std::nullopt;
  return again;
}

}  // namespace

bool other_threads_sleep(pid_t and_of) {
  return others_asleep(and_of == 0 ? std::vector<pid_t>{} : std::vector{and_of}, Whose::all).has_value();
}

bool is_traced() {
  const UniqueFd fd(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text;
  const auto length = fd.valid() ? ::read(fd.get(), text.data(), text.size()) : -1;
  const std::string_view status(text.data(), static_cast<std::size_t>(std::max<decltype(length)>(length, 0)));
  constexpr std::string_view kTracer = "TracerPid:\t";
  const auto at = status.find(kTracer);
  return at != std::string_view::npos && status.substr(at + kTracer.size(), 2) != "0\n";
}

std::uint64_t others_at_rest() {
  const auto asleep = others_asleep(children(), Whose::others);
  if (!asleep) return 0;
  std::uint64_t mark = 1;
  for (const Sleep& sleep : *asleep)
    mark = (mark ^ static_cast<std::uint64_t>(sleep.thread) << 40 ^ sleep.switches) * 0x9e3779b97f4a7c15u | 1;
  return mark;
}

std::string_view process_state_name(char state) {
  switch (state) {
    case 'R':
      return "running";
    case 'S':
      return "sleeping";
    case 'D':
      return "in disk sleep";
    case 'T':
      return "stopped";
    case 't':
      return "traced";
    case 'Z':
      return "a zombie";
    default:
      return "gone";
  }
}

namespace {
std::uint64_t namespace_at(const char* path) {
  struct stat info {};
  return ::stat(path, &info) == 0 ? info.st_ino : 0;
}
}  // namespace

std::uint64_t pid_namespace() { return namespace_at("/proc/self/ns/pid"); }
std::uint64_t network_namespace() { return namespace_at("/proc/self/ns/net"); }

}  // namespace orrery::job
