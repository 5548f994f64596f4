// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/job.hpp"

#include "emu/base/config.hpp"
#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/base/wait.hpp"
#include "emu/job/cores.hpp"
#include "emu/job/domain_list.hpp"
#include "emu/job/entrance.hpp"
#include "emu/job/random.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <fcntl.h>
#include <unistd.h>

namespace orrery::job {

namespace {

constexpr std::int64_t kJoinNs = 10'000'000'000;

const char* environment(const char* name) { return ::secure_getenv(name); }

// All processes of a host without a placement live on one node. Its number must not be that of another host.
PePlace place_of_this_host() {
  static const std::uint32_t nid = [] {
    std::uint32_t mixed = 0;
    for (const std::uint8_t byte : boot_id()) mixed = (mixed ^ byte) * 16777619u;
    return std::max((mixed ^ mixed >> 18) & Placement::kMaxAddress, 1u);
  }();
  return {nid, nid, 0};
}

// The process's job. A forked child finds its parent's here, and leaves that alone.
struct OfProcess {
  std::mutex mu;
  Job* job = nullptr;  // guarded by mu; never freed: the service thread runs until the process ends
  pid_t owner = 0;     // guarded by mu
};
OfProcess& of_this_process() {
  static OfProcess* const one = new OfProcess;
  return *one;
}

void apply_environment() {
  const std::string level = config::text("ORRERY_LOG");
  constexpr std::string_view kLevels[] = {"off", "error", "warn", "info", "debug", "trace"};
  for (std::size_t i = 0; i < std::size(kLevels); ++i) {
    if (level == kLevels[i]) log::g_level.store(static_cast<log::Level>(i), std::memory_order_relaxed);
  }
}

// The file of the directory of `orrery run`.
Result<UniqueFd> directory_file(const Launch& launch) {
  const auto entrance = EntranceName::parse(launch.entrance);
  // A copy: the original is the launcher's to place.
  UniqueFd fd(own_descriptor(fcntl(launch.directory_fd, F_DUPFD_CLOEXEC, 0)));
  const int error = errno;
  if (!entrance) {
    if (fd.valid()) return fd;
    log::error("ORRERY_JOB_FD={} is not open here: {}; do not close descriptors of `orrery run`",
               launch.directory_fd, std::strerror(error));
    return Errc::invalid_state;
  }
  // What was closed may be another file by now.
  if (fd.valid() && HostDirectory::job_id_of(fd.get()) == entrance->job_id) return fd;
  auto fetched = fetch_directory(launch.entrance, monotonic_ns() + kJoinNs);
  if (!fetched.ok()) {
    log::error("the job that this process was started in is not there: {} does not answer at @{} ({})",
               "`orrery run`", launch.entrance, errc_name(fetched.code()));
    return fetched.code() == Errc::timeout ? Errc::timeout : Errc::invalid_state;
  }
  return fetched;
}

}  // namespace

Result<UniqueFd> pmi_of_launch(const Launch& launch) {
  const std::string& at = launch.entrance.empty() ? launch.pmi_at : launch.entrance;
  if (at.empty() || Launch::kOfProcess.maker_of(launch.pmi_fd)) return UniqueFd(launch.pmi_fd);
  auto fetched = fetch_pmi(at, static_cast<std::uint32_t>(launch.rank), monotonic_ns() + kJoinNs);
  if (fetched.code() == Errc::not_done) {
    log::error(
        "PMI_FD={} is not open here, and `orrery run` has heard from rank {} already: a rank is one "
        "process's",
        launch.pmi_fd, launch.rank);
    return Errc::invalid_state;
  }
  if (!fetched.ok())
    log::error("PMI_FD={} is not open here, and `orrery run` does not answer at @{}: {}", launch.pmi_fd, at,
               errc_name(fetched.code()));
  return fetched;
}

Result<Job*> Job::of_process(std::string_view launch_name, int launch_size) {
  OfProcess& mine = of_this_process();
  const std::lock_guard lock(mine.mu);
  if (mine.job != nullptr && mine.owner == getpid()) return mine.job;
  apply_environment();
  auto launch = Launch::detect(environment);
  if (!launch.ok()) return launch.code();
  if (launch.value().size < 0) launch.value().size = launch_size;
  if (launch.value().kind != LaunchKind::singleton) log::set_pe(launch.value().rank);
  // `orrery run` has said it once for all its PEs.
  if (launch.value().directory_fd < 0) config::tell_of_environment(environ);
  auto joined = join_as(launch.value(), launch_name);
  if (!joined.ok()) return joined.code();
  mine.job = std::move(joined).value().release();
  mine.owner = getpid();
  return mine.job;
}

Job* Job::if_joined() {
  OfProcess& mine = of_this_process();
  const std::lock_guard lock(mine.mu);
  return mine.owner == getpid() ? mine.job : nullptr;
}

// Finds the directory that the launch implies, and joins it.
Result<std::unique_ptr<Job>> Job::join_as(const Launch& launch, std::string_view launch_name) {
  std::unique_ptr<Job> job(new Job);
  job->launch_ = launch;
  auto loop = EventLoop::start("orrery-service");
  if (!loop.ok()) return loop.code();
  job->own_loop_ = std::move(loop).value();
  job->loop_ = job->own_loop_.get();
  std::string prefix;
  bool share = false;
  std::uint32_t pes_with_slots = 0;
  if (launch.directory_fd >= 0) {
    auto fd = directory_file(launch);
    if (!fd.ok()) return fd.code();
    auto directory = HostDirectory::open(std::move(fd).value());
    if (!directory.ok()) return directory.code();
    job->own_directory_ = std::move(directory).value();
    prefix = socket_prefix(fmt::format("{:016x}", job->own_directory_->job_id()));
    pes_with_slots = job->own_directory_->pe_count();
  } else {
    std::string name = config::text("ORRERY_JOB");
    // What two launchers started meets only where it is told to: processes of a job that is stopped would
    // keep those of the next one out.
    if (environment("ORRERY_JOB") == nullptr && !launch.server.empty())
      name = fmt::format("{}/{}", name, launch.server);
    // A directory for this job alone, in which slots are ranks.
    if (!launch_name.empty() && launch.size > 0) {
      name = fmt::format("{}/{}", name, launch_name);
      pes_with_slots = static_cast<std::uint32_t>(launch.size);
    }
    auto shared = open_user_directory(*job->loop_, name, monotonic_ns() + kJoinNs);
    if (!shared.ok()) return shared.code();
    job->own_directory_ = std::move(shared.value().directory);
    job->leader_ = std::move(shared.value().leader);
    prefix = socket_prefix(name);
    share = true;
  }
  job->directory_ = job->own_directory_.get();
  const Status entered = job->enter(prefix, share, pes_with_slots);
  if (!entered.ok()) return entered.code();
  // Programs that this one starts do not inherit the job's memory and its secret: one that joins by the
  // environment asks the launcher's entrance.
  if (launch.directory_fd >= 0 && !launch.entrance.empty() &&
      HostDirectory::job_id_of(launch.directory_fd) == job->own_directory_->job_id())
    (void)fcntl(launch.directory_fd, F_SETFD, FD_CLOEXEC);
  if (share) {
    // The launcher's place: the process that set these variables stood there.
    for (const auto& domain : parse_domain_list(environment("PMI_GNI_PTAG"), environment("PMI_GNI_COOKIE"))) {
      const auto declared = job->declare_domain(domain.ptag, domain.cookie);
      if (!declared.ok()) return declared.code();
    }
  }
  return job;
}

Result<std::unique_ptr<Job>> Job::join(const Options& options) {
  std::unique_ptr<Job> job(new Job);
  job->launch_ = options.launch;
  job->loop_ = options.loop;
  job->directory_ = options.directory;
  if (job->loop_ == nullptr) {
    auto loop = EventLoop::start("orrery-service");
    if (!loop.ok()) return loop.code();
    job->own_loop_ = std::move(loop).value();
    job->loop_ = job->own_loop_.get();
  }
  if (job->directory_ == nullptr) {
    auto directory = HostDirectory::create({});
    if (!directory.ok()) return directory.code();
    job->own_directory_ = std::move(directory).value();
    job->directory_ = job->own_directory_.get();
  }
  const Status entered =
      job->enter(socket_prefix(fmt::format("{:016x}", job->directory_->job_id())), false, 0);
  if (!entered.ok()) return entered.code();
  return job;
}

Status Job::enter(const std::string& prefix, bool share, std::uint32_t pes_with_slots) {
  placements_.push_back(std::make_unique<const Placement>(Placement::of(*directory_)));
  placement_.store(placements_.back().get(), std::memory_order_release);
  pes_with_slots_ = pes_with_slots <= HostDirectory::kMaxPes ? pes_with_slots : 0;
  const std::uint32_t pes = placement().pe_count();
  if (pes > 0 && launch_.rank >= static_cast<int>(pes)) {
    log::error("PMI_RANK={} is not accepted: expected 0..{}", launch_.rank, pes - 1);
    return Errc::invalid_param;
  }
  // The socket listens before the slot names it: a process that finds us can connect.
  auto server = DescriptorServer::listen(*loop_, member_socket_name(prefix));
  if (!server.ok()) return server.code();
  server_ = std::move(server).value();
  const auto self =
      directory_->join({.rank = launch_.rank, .socket_name = server_->socket_name(), .pes = pes_with_slots_});
  if (!self.ok()) return self.code();
  self_ = self.value();
  if (share) server_->share_directory();
  const Status serving = server_->serve(*directory_, self_);
  if (!serving.ok()) return serving;
  peers_ = std::make_unique<PeerWatch>(*loop_, *directory_);
  wait_budget_ = budget();
  return {};
}

std::uint32_t Job::nic_address_of_this_host() { return place_of_this_host().nic_address; }

PePlace Job::own_place() const {
  const Placement& all = placement();
  const bool placed = launch_.rank >= 0 && static_cast<std::uint32_t>(launch_.rank) < all.pe_count();
  return placed ? all.of_pe(static_cast<std::uint32_t>(launch_.rank)) : place_of_this_host();
}

void Job::place(Placement placement) {
  placements_.push_back(std::make_unique<const Placement>(std::move(placement)));
  placement_.store(placements_.back().get(), std::memory_order_release);
}

WaitBudget Job::budget() const {
  std::uint32_t here = launch_.local_size > 0 ? static_cast<std::uint32_t>(launch_.local_size) : 0;
  const std::uint32_t counted = directory_->allowed_cores();
  // Under `orrery run`, which counts the cores, the local size is that of a modelled node; the cores are
  // shared by all of the job.
  if (counted != 0) here = std::max(here, placement().pe_count());
  if (here == 0) here = placement().pe_count();
  if (here == 0) here = static_cast<std::uint32_t>(directory_->live_processes().size());
  AllowedCores allowed;
  if (counted == 0) {
    allowed = allowed_cores();
    if (launch_.local_size > 0) allowed.threads = std::max(allowed.threads, parent_threads());
  }
  WaitBudget budget = wait_budget_for(here, counted != 0 ? counted : allowed.usable());
  if (!config::text("ORRERY_SPINS").empty()) {
    budget.spins = static_cast<std::uint32_t>(config::number("ORRERY_SPINS"));
  }
  if (!config::text("ORRERY_YIELDS").empty()) {
    budget.yields = static_cast<std::uint32_t>(config::number("ORRERY_YIELDS"));
  }
  return budget;
}

Job::~Job() {
  peers_.reset();
  server_.reset();
  leader_.reset();
  if (self_.valid() && directory_ != nullptr) directory_->leave(self_);
}

Result<std::uint32_t> Job::nic_address_of(ProcessRef process) const {
  const Placement& all = placement();
  std::int32_t rank = -1;
  std::uint32_t generation = 0;
  if (directory_->remote_host_of(process.index, &generation) != 0) {
    if (generation != process.generation) return Errc::unreachable;
    rank = static_cast<std::int32_t>(process.index);
  } else {
    const auto info = directory_->info_of(process);
    if (!info.ok()) return info.code();
    rank = info.value().rank;
  }
  if (rank < 0 || static_cast<std::uint32_t>(rank) >= all.pe_count()) return place_of_this_host().nic_address;
  return all.of_pe(static_cast<std::uint32_t>(rank)).nic_address;
}

Result<DomainId> Job::find_domain(std::uint8_t ptag, std::uint32_t cookie) const {
  return directory_->find_domain(ptag, cookie);
}
Result<DomainId> Job::declare_domain(std::uint8_t ptag, std::uint32_t cookie) {
  return directory_->declare_domain(ptag, cookie);
}
Result<std::uint8_t> Job::find_ptag(std::uint32_t cookie) const { return directory_->find_ptag(cookie); }

Result<EndpointRef> Job::publish(DomainId domain, std::uint32_t instance, std::uint32_t nic_index) {
  return directory_->publish_endpoint(self_, {domain, nic_address(), instance}, nic_index);
}

}  // namespace orrery::job
