// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/socket_folder.hpp"

#include "emu/base/config.hpp"
#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/base/wait.hpp"
#include "emu/job/abstract_socket.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

namespace orrery::job {

namespace {

constexpr std::int64_t kLockNs = 2'000'000'000;  // a process holds the folder for microseconds
constexpr time_t kSweepSeconds = 60;             // between looks for what killed processes left
constexpr const char* kLock = ".lock";
constexpr std::string_view kAbstract = "abstract";

bool is_private(const std::string& folder) {
  struct stat there {};
  return lstat(folder.c_str(), &there) == 0 && S_ISDIR(there.st_mode) && there.st_uid == geteuid() &&
         (there.st_mode & 077) == 0;
}

// Whether no other user can put something else in the place of what lies in `folder`.
bool keeps_names(const std::string& folder) {
  struct stat there {};
  return stat(folder.c_str(), &there) == 0 && S_ISDIR(there.st_mode) &&
         ((there.st_mode & 022) == 0 || (there.st_mode & S_ISVTX) != 0);
}

struct Candidate {
  std::string parent, name;
  std::string path() const { return parent + "/" + name; }
};

std::vector<Candidate> candidates() {
  std::vector<Candidate> all;
  if (const char* const chosen = secure_getenv("XDG_RUNTIME_DIR"); chosen != nullptr && *chosen == '/')
    all.push_back({chosen, "orrery"});
  all.push_back({fmt::format("/run/user/{}", geteuid()), "orrery"});
  all.push_back({"/tmp", fmt::format("orrery-{}", geteuid())});
  return all;
}

// The folders that are there; `make`: the first that can be had, made if need be.
std::vector<std::string> folders(bool make) {
  std::vector<std::string> found;
  // Of a user without a number here the files of all such users seem to be its own.
  if (is_overflow_user(geteuid())) return found;
  const std::string chosen = config::text("ORRERY_SOCKETS");
  if (chosen == kAbstract) return found;
  if (!chosen.empty()) {
    if (is_private(chosen)) return {chosen};
    log::error("ORRERY_SOCKETS={} is not accepted: expected a folder of this user with mode 0700, or {}",
               chosen, kAbstract);
    return found;
  }
  for (const Candidate& one : candidates()) {
    if (!keeps_names(one.parent)) continue;
    if (make && mkdir(one.path().c_str(), 0700) != 0 && errno != EEXIST) continue;
    if (!is_private(one.path())) continue;
    found.push_back(one.path());
    if (make) break;
  }
  return found;
}

std::optional<sockaddr_un> address_of(const std::string& folder, std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (folder.size() + name.size() >= sizeof address.sun_path) return std::nullopt;
  const std::string path = folder + std::string(name);
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

UniqueFd new_socket() {
  return UniqueFd(own_descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
}

// What a connection to the socket at `address` says; 0: there is a listener.
int knock(const sockaddr_un& address) {
  const UniqueFd fd = new_socket();
  if (!fd.valid()) return errno;
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

void pause() {
  const timespec moment{0, 1'000'000};
  nanosleep(&moment, nullptr);
}

// The folder's lock: between bind() and listen() of its holder a socket seems to be left behind. Invalid when
// it cannot be had.
UniqueFd locked(const std::string& folder) {
  const std::string path = folder + "/" + kLock;
  UniqueFd fd(own_descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)));
  const std::int64_t deadline = monotonic_ns() + kLockNs;
  while (fd.valid() && flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || monotonic_ns() > deadline) return {};
    pause();
  }
  return fd;
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  DIR* const list = opendir(folder.c_str());
  if (list == nullptr) return files;
  while (const dirent* const entry = readdir(list)) {
    if (entry->d_name[0] != '.') files.emplace_back(entry->d_name);
  }
  closedir(list);
  return files;
}

// REQUIRES: the folder is locked by `lock`, whose file's time says when this was done last.
void remove_left_behind(const std::string& folder, const UniqueFd& lock) {
  struct stat last {};
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (fstat(lock.get(), &last) != 0 ||
      (last.st_size != 0 && now.tv_sec - last.st_mtim.tv_sec < kSweepSeconds))
    return;
  // One byte: from now on its time counts.
  if (pwrite(lock.get(), "x", 1, 0) != 1) return;
  for (const std::string& file : files_of(folder)) {
    const auto address = address_of(folder, "/" + file);
    if (address && knock(*address) == ECONNREFUSED) (void)unlink(address->sun_path);
  }
}

}  // namespace

bool is_in_folder(std::string_view name) {
  return name.size() > 1 && name.front() == '/' && name[1] != '.' &&
         name.find('/', 1) == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

std::string socket_folder() {
  const auto found = folders(true);
  return found.empty() ? std::string() : found.front();
}

Result<UniqueFd> listen_in_folder(std::string_view name) {
  constexpr int kBacklog = 1024;  // all processes of a job may connect at once
  const std::string folder = socket_folder();
  if (folder.empty() || !is_in_folder(name)) return Errc::invalid_param;
  const auto address = address_of(folder, name);
  if (!address) return Errc::size;
  const UniqueFd lock = locked(folder);
  if (!lock.valid()) {
    log::error("the folder {} for sockets cannot be locked: {}", folder, std::strerror(errno));
    return Errc::timeout;
  }
  remove_left_behind(folder, lock);
  UniqueFd fd = new_socket();
  const auto failed = [&](const char* what) {
    log::error("socket {} cannot {}: {}", address->sun_path, what, std::strerror(errno));
    return Errc::system;
  };
  if (!fd.valid()) return failed("be made");
  const auto bound = [&] {
    return bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0;
  };
  if (!bound()) {
    if (errno != EADDRINUSE) return failed("be bound");
    if (knock(*address) != ECONNREFUSED) return Errc::no_resource;
    if (unlink(address->sun_path) != 0 || !bound()) return failed("be bound");
  }
  if (::listen(fd.get(), kBacklog) != 0) return failed("listen");
  return fd;
}

Result<UniqueFd> connect_in_folder(std::string_view name, std::int64_t deadline_ns) {
  if (!is_in_folder(name)) return Errc::invalid_param;
  for (const std::string& folder : folders(false)) {
    const auto address = address_of(folder, name);
    if (!address) return Errc::size;
    while (true) {
      UniqueFd fd = new_socket();
      if (!fd.valid()) {
        log::error("no Unix socket: {}", std::strerror(errno));
        return Errc::system;
      }
      if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0) return fd;
      if (errno == ECONNREFUSED || errno == ENOENT) break;
      if (errno != EAGAIN && errno != EINTR) {
        log::error("socket {} cannot be connected to: {}", address->sun_path, std::strerror(errno));
        return Errc::system;
      }
      // The backlog is full: there is nothing to poll for.
      if (monotonic_ns() >= deadline_ns) return Errc::timeout;
      pause();
    }
  }
  return Errc::unreachable;
}

void remove_from_folder(std::string_view name) {
  const std::string folder = socket_folder();
  if (folder.empty() || !is_in_folder(name)) return;
  (void)unlink((folder + std::string(name)).c_str());
}

std::vector<std::string> names_in_folders(std::string_view prefix) {
  std::vector<std::string> names;
  for (const std::string& folder : folders(false)) {
    for (const std::string& file : files_of(folder)) {
      if (std::string name = "/" + file; name.starts_with(prefix)) names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace orrery::job
