// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/host/runtime.hpp"

#include "emu/base/asymmetric_fence.hpp"
#include "emu/base/check.hpp"
#include "emu/base/config.hpp"
#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/base/timed_path.hpp"
#include "emu/clock/choice.hpp"
#include "emu/clock/paced_clock.hpp"
#include "emu/clock/program_code.hpp"
#include "emu/clock/program_time.hpp"
#include "emu/clock/virtual_clock.hpp"
#include "emu/job/cores.hpp"
#include "emu/nic/state/hazard.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace orrery::nic {

namespace {

// How long a first post waits for its peer to appear and to answer.
constexpr std::int64_t kConnectNs = 10'000'000'000;

// A peer's addresses through windows of its memory file.
class WindowMap final : public AddressMap {
 public:
  explicit WindowMap(std::unique_ptr<memory::PeerMemory> memory) : memory_(std::move(memory)) {}
  ORRERY_TIMED_INLINE Run find(std::uint64_t address) override {
    const auto window = memory_->window(address);
    if (!window.ok()) return {};
    return {window.value().va_begin, window.value().va_end, window.value().base};
  }

 private:
  std::unique_ptr<memory::PeerMemory> memory_;
};

constexpr std::int64_t kNoRoomNs = 1'000'000'000;  // a segment that found no room is not tried again so soon
std::atomic<std::int64_t> g_no_room_until{0};

// A peer's segment, mapped here for good: its NIC may be looked at until this process ends.
Result<NicView> map_segment(int fd) {
  const off_t bytes = lseek(fd, 0, SEEK_END);
  if (bytes <= 0) return Errc::corrupt;
  void* base = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    if (g_no_room_until.exchange(monotonic_ns() + kNoRoomNs, std::memory_order_relaxed) == 0)
      log::error("no address space: a peer's segment needs {} MB (ulimit -v)", bytes / 1'000'000);
    return Errc::no_memory;
  }
  const auto view = NicView::open(base, static_cast<std::uint64_t>(bytes));
  if (!view.ok()) munmap(base, static_cast<std::size_t>(bytes));
  return view;
}

// What the faults that were asked for did to this process, in one line.
void report_faults(bool has_faults, const FaultCounters& counters) {
  if (!has_faults) return;
  const auto value = [](const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  log::warn(
      "faults met: {} dropped, {} corrupt, {} by revoked handles, {} unreachable, {} delayed, {} "
      "messages sent again, {} link CRC errors with a retry each, {} links given up",
      value(counters.dropped), value(counters.corrupted), value(counters.revoked),
      value(counters.unreachable), value(counters.delayed), value(counters.retransmitted),
      value(counters.link_errors), value(counters.links_failed));
}

constinit Lock<LockRank::runtime> g_runtime_mu;
Runtime* g_runtime = nullptr;
pid_t g_runtime_pid = 0;

}  // namespace

Result<Runtime*> Runtime::of_process() {
  const std::lock_guard lock(g_runtime_mu);
  if (g_runtime != nullptr && g_runtime_pid == getpid()) return g_runtime;
  // A forked child lets its parent's runtime be: its threads are not here, its mappings are.
  auto runtime = create();
  if (!runtime.ok()) return runtime.code();
  g_runtime = std::move(runtime).value().release();
  g_runtime_pid = getpid();
  // Ends the clock, the wire and the engine, and takes back what the process offers to peers, while
  // everything that this needs is still there. The object stays: a thread of the program may wait in a call
  // until the process ends.
  constexpr auto kEnd = [] {
    if (g_runtime_pid == getpid()) g_runtime->end();
  };
  std::atexit(kEnd);
  std::at_quick_exit(kEnd);
  return g_runtime;
}

namespace {

// What every PE of a job must have chosen alike, where peers can see it.
struct ClockStamp {
  char words[256];
};

ClockStamp& stamp_of(const NicView& nic) { return nic.unit<ClockStamp, kClockArea>(); }

// A peer's need not end.
std::string words_of(const NicView& nic) {
  const ClockStamp& stamp = stamp_of(nic);
  return {stamp.words, strnlen(stamp.words, sizeof stamp.words)};
}

struct OfProcess {
  bool known = false;
  pid_t pid = 0;
  clock::Clock* clock = nullptr;
  std::string words = "raw";
};
constinit Lock<LockRank::clock> g_clock_mu;
OfProcess g_clock;  // guarded by g_clock_mu

}  // namespace

Result<clock::Clock*> Runtime::clock_of_process(job::ProcessRef first) {
  const std::lock_guard lock(g_clock_mu);
  if (g_clock.known && g_clock.pid == getpid()) return g_clock.clock;
  if (g_clock.known && g_clock.clock != nullptr) {
    log::error("a forked child of a PE is no PE of its own: it cannot use the NIC under a clock");
    return Errc::unsupported;
  }
  const clock::ReadChoice read = clock::choice_of_environment();
  if (!read.problem.empty()) {
    log::error("{}", read.problem);
    return Errc::invalid_param;
  }
  clock::Clock* clock = nullptr;
  if (read.choice.kind != clock::Kind::raw) {
    if (read.choice.kind == clock::Kind::virtual_time && clock::runs_under_valgrind()) {
      log::error("valgrind cannot run a program in virtual time: leave out --machine, or take --clock paced");
      return Errc::unsupported;
    }
    auto job = job::Job::of_process();
    if (!job.ok()) return job.code();
    if (job.value()->rank() <= 0 && clock::program_reads_counter()) {
      log::warn(
          "the program reads the processor's time-stamp counter (rdtsc), which is this host's: what it "
          "times so is not the machine's time, which clock_gettime gives");
    }
    if (read.choice.kind == clock::Kind::virtual_time && job.value()->rank() <= 0 &&
        clock::program_has_libc_clock()) {
      log::warn(
          "the program reads libc's clock, which is this host's: what it times is not the machine's time; "
          "link it to liborrery too (-lorrery), or set LD_PRELOAD=liborrery.so.0");
    }
    auto shared = clock::SharedClock::open(*job.value(), read.choice, first);
    if (!shared.ok()) return shared.code();
    const std::uint32_t slot = job.value()->self().index;
    if (read.choice.kind == clock::Kind::virtual_time) {
      auto made = std::make_unique<clock::VirtualClock>(std::move(shared).value(), read.choice,
                                                        job.value()->wait_budget(), slot,
                                                        config::text("ORRERY_RECORD"));
      clock::serve_program(made.get());
      made->watch_program();
      clock = made.release();
    } else {
      const bool cores_to_spare = 2 * shared.value()->pes() <= job::allowed_cores().usable();
      auto made = std::make_unique<clock::PacedClock>(std::move(shared).value(), cores_to_spare, slot);
      if (!made->runs()) return Errc::no_resource;
      clock = made.release();
    }
    // For a process that never makes a NIC; one that does ends its NIC first.
    std::atexit([] {
      const std::lock_guard at_exit(g_clock_mu);
      if (g_clock.clock != nullptr && g_clock.pid == getpid()) g_clock.clock->finish();
    });
  }
  g_clock = {.known = true, .pid = getpid(), .clock = clock, .words = read.choice.words()};
  return clock;
}

Result<std::unique_ptr<Runtime>> Runtime::create() {
  auto job = job::Job::of_process();
  if (!job.ok()) return job.code();
  const auto clock = clock_of_process();
  if (!clock.ok()) return clock.code();
  std::unique_ptr<Runtime> runtime(new Runtime(*job.value()));
  runtime->clock_ = clock.value();
  auto space = memory::AddressSpace::create({});
  if (!space.ok()) {
    log::error("no memory file: {}", errc_name(space.code()));
    return space.code();
  }
  runtime->memory_ = std::move(space).value();
  const Status made = runtime->make_segment();
  if (!made.ok()) return made.code();
  return runtime;
}

Status Runtime::make_segment() {
  // Room for two match units beside all queues. Address space alone: pages of the file come with their use.
  constexpr std::uint64_t kArenaBytes = std::uint64_t{1} << 30;
  Geometry geometry;
  rlimit limit{};
  // Where it is limited (ulimit -v), the default, which has room for one.
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    geometry.arena_bytes = kArenaBytes;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    // A file over the limit raises SIGXFSZ: make do with what is allowed.
    geometry.lane_count = 64;
    const std::uint64_t fixed = kLanesOffset + geometry.lanes_bytes();
    if (limit.rlim_cur < fixed + (1u << 20)) {
      log::error("the file size limit of {} bytes leaves no room for a NIC segment of {} bytes (ulimit -f)",
                 static_cast<std::uint64_t>(limit.rlim_cur), fixed + (1u << 20));
      return Errc::no_memory;
    }
    geometry.arena_bytes =
        std::min<std::uint64_t>(geometry.arena_bytes, (limit.rlim_cur - fixed) & ~std::uint64_t{4095});
  }
  segment_bytes_ = geometry.segment_bytes();
  segment_fd_ = UniqueFd(own_descriptor(memfd_create("orrery-nic", MFD_CLOEXEC)));
  if (segment_fd_.get() < 0 || ftruncate(segment_fd_.get(), static_cast<off_t>(segment_bytes_)) != 0) {
    log::error("no NIC segment of {} bytes: {}", segment_bytes_, std::strerror(errno));
    return Errc::no_memory;
  }
  segment_ = mmap(nullptr, segment_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, segment_fd_.get(), 0);
  if (segment_ == MAP_FAILED) {
    segment_ = nullptr;
    log::error("a NIC segment of {} bytes cannot be mapped: {}", segment_bytes_, std::strerror(errno));
    return Errc::no_memory;
  }
  doorbell_ = UniqueFd(own_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  if (doorbell_.get() < 0) {
    log::error("no doorbell for the NIC: {}", std::strerror(errno));
    return Errc::system;
  }

  const bool can_fence = asymmetric_fence::enrol();
  const auto self = static_cast<wire::ProcessSlot>(job_.self().index);
  const NicView view = NicView::create(segment_, geometry, self, getpid(), !can_fence);
  {
    const std::lock_guard lock(g_clock_mu);
    std::strncpy(stamp_of(view).words, g_clock.words.c_str(), sizeof(ClockStamp::words) - 1);
  }
  Nic::Options options;
  const std::string adopt = config::text("ORRERY_ADOPT");
  // Memory that the program polls is watched page by page, which is for memory in the file alone; and where
  // time is paced, a frame that waits for a service thread is late.
  options.eager_adoption = adopt == "eager" || clock_ != nullptr;
  options.may_adopt = adopt != "never" && memory_->file() >= 0;
  options.adopt_after = static_cast<std::uint32_t>(config::number("ORRERY_ADOPT_AFTER"));
  options.bte_crossover = config::number("ORRERY_BTE_CROSSOVER");
  options.amo_cache_entries = static_cast<std::uint32_t>(config::number("ORRERY_AMO_CACHE_ENTRIES"));
  if (config::text("ORRERY_AMO_CACHE") == "lazy") options.amo_cache_mode = AmoCacheMode::lazy;
  options.gemini = config::text("ORRERY_DEVICE") == "gemini";
  std::string why;
  if (const auto limits = job::parse_limits(config::text("ORRERY_LIMITS"), &why); limits.ok())
    options.limits = limits.value();
  else
    log::error("ORRERY_LIMITS: {}; there are no limits", why);
  // What is not accepted was said when the environment was looked at.
  options.faults = parse_faults(config::text("ORRERY_FAULT"), &why).value_or(FaultSpec{});
  options.fault_pe = job_.rank();
  nic_ = std::make_unique<Nic>(*this, view, self, options);

  const Status watched = job_.loop().add(doorbell_.get(), EPOLLIN, [this](std::uint32_t) { on_doorbell(); });
  if (!watched.ok()) return watched;
  heartbeat_ = UniqueFd(own_descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)));
  if (heartbeat_.get() < 0) {
    log::error("no timer for the NIC: {}", std::strerror(errno));
    return Errc::system;
  }
  const Status beats = job_.loop().add(heartbeat_.get(), EPOLLIN, [this](std::uint32_t) { on_heartbeat(); });
  if (!beats.ok()) return beats;
  job_.offer(job::DescriptorKind::nic_segment, segment_fd_.get());
  job_.offer(job::DescriptorKind::memory_file, memory_->file());
  job_.offer(job::DescriptorKind::doorbell, doorbell_.get());
  wire_for_all_ = config::text("ORRERY_WIRE") == "ofi";
  return wire_for_all_ || job_.directory().wire_job() ? open_wire() : Status{};
}

Runtime::~Runtime() { end(); }

void Runtime::end() {
  if (ended_) return;
  ended_ = true;
  if (clock_ != nullptr) clock_->finish();
  stop_wire();
  job_.offer(job::DescriptorKind::nic_segment, -1);
  job_.offer(job::DescriptorKind::memory_file, -1);
  job_.offer(job::DescriptorKind::doorbell, -1);
  if (doorbell_.get() >= 0) job_.loop().remove(doorbell_.get());
  if (heartbeat_.get() >= 0) job_.loop().remove(heartbeat_.get());
  for (std::uint32_t slot = 0; slot < kMaxProcesses; ++slot) {
    const Contact* contact = contacts_[slot].load(std::memory_order_acquire);
    if (contact != nullptr) job_.peers().remove({.index = slot, .generation = contact->generation});
  }
  {
    const std::lock_guard lock(contacts_mu_);
    for (const ProcessName& process : watched_)
      job_.peers().remove({.index = process.slot, .generation = process.generation});
  }
  // By the service thread, behind a callback that is running now: that one may set it itself.
  job_.loop().run_and_wait([this] {
    job_.loop().set_tick(std::chrono::nanoseconds(Attendant::kServicePeriodNs), [] { return false; });
  });
  // What is running on the service thread ends before the NIC does.
  job_.loop().run_and_wait([] {});
  // Without a NIC: the system did not give what one needs.
  if (nic_ != nullptr) report_faults(nic_->has_faults(), error_state(nic_->view()).faults);
  if (nic_ != nullptr) nic_->end();
}

// ---- service thread ----

void Runtime::on_doorbell() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = read(doorbell_.get(), &count, sizeof count);
  tick();
}

void Runtime::on_heartbeat() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = read(heartbeat_.get(), &count, sizeof count);
  if (nic_->collective().heartbeat()) return;
  const itimerspec never{};
  timerfd_settime(heartbeat_.get(), 0, &never, nullptr);
  nic_->collective().heart_stopped();
}

void Runtime::start_heartbeat() {
  itimerspec when{};
  when.it_interval.tv_nsec = kHeartbeatNs;
  when.it_value = when.it_interval;
  timerfd_settime(heartbeat_.get(), 0, &when, nullptr);
}

void Runtime::tick() {
  if (!serve()) return;
  if (ticking_.exchange(true, std::memory_order_relaxed)) return;
  job_.loop().set_tick(std::chrono::nanoseconds(Attendant::kServicePeriodNs), [this] {
    if (serve()) return true;
    ticking_.store(false, std::memory_order_relaxed);
    return false;
  });
}

void Runtime::ring_self() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto rung = write(doorbell_.get(), &one, sizeof one);
}

void Runtime::run_on_service_thread(void (*work)(void*), void* argument) {
  const clock::RealWait wait(clock_);
  job_.loop().run_and_wait([work, argument] { work(argument); });
}

// ---- peers ----

Result<ProcessName> Runtime::find_process(std::uint32_t nic_address, wire::ProcessSlot slot) {
  if (const auto remote = remote_in(slot); remote.ok()) {
    const auto address = job_.nic_address_of({.index = slot, .generation = remote.value().generation});
    if (!address.ok()) return address.code();
    if (address.value() != nic_address) return Errc::no_match;
    return remote;
  }
  for (const auto& process : job_.directory().live_processes()) {
    if (process.index != slot) continue;
    const auto address = job_.nic_address_of(process);
    if (!address.ok()) return address.code();
    if (address.value() != nic_address) return Errc::no_match;
    return ProcessName{slot, process.generation};
  }
  return Errc::unreachable;
}

Result<ProcessName> Runtime::find_port(std::uint16_t domain, std::uint32_t nic_address,
                                       std::uint32_t instance) {
  const auto found = job_.find({.domain = domain, .nic_address = nic_address, .instance = instance});
  if (!found.ok()) return found.code();
  return ProcessName{static_cast<wire::ProcessSlot>(found.value().process.index),
                     found.value().process.generation};
}

Result<ProcessName> Runtime::process_in(wire::ProcessSlot slot) {
  const Contact* contact = contacts_[slot].load(std::memory_order_acquire);
  if (contact != nullptr && alive({slot, contact->generation})) return ProcessName{slot, contact->generation};
  for (const auto& process : job_.directory().live_processes()) {
    if (process.index == slot) return ProcessName{slot, process.generation};
  }
  return remote_in(slot);
}

Result<PeerRoute> Runtime::connect(ProcessName process) {
  PeerRoute link;
  link.process = process;
  if (process.slot == nic_->self()) {
    link.nic = nic_->view();
    link.same_address_space = true;
    link.strong_hazards = nic_->view().header().strong_hazards != 0;
    return Result<PeerRoute>(std::move(link));
  }
  if (goes_by_wire(process.slot)) return connect_by_wire(process);
  if (monotonic_ns() < g_no_room_until.load(std::memory_order_relaxed)) return Errc::no_memory;
  // Another user's process stays that: it is asked once, and told of once.
  const std::uint64_t name = std::uint64_t{process.generation} + 1;
  if (refused_[process.slot].load(std::memory_order_relaxed) == name) return Errc::permission;
  const job::ProcessRef reference{.index = process.slot, .generation = process.generation};
  const clock::RealWait wait(clock_);
  auto descriptors = job_.fetch(reference, monotonic_ns() + kConnectNs);
  // At its end a process takes its NIC back first.
  if (descriptors.ok() && !descriptors.value().nic_segment.valid()) descriptors = Errc::unreachable;
  if (!descriptors.ok()) {
    const bool is_told = told_[process.slot].exchange(name) == name;  // a program may try again and again
    if (descriptors.code() == Errc::permission) refused_[process.slot].store(name);
    if (is_told) return descriptors.code();
    if (descriptors.code() == Errc::unreachable)
      log::error("process {} does not hand out its NIC: it has ended, or is about to", process.slot);
    else if (descriptors.code() != Errc::permission)
      log::error("process {} does not hand out its NIC: {}", process.slot, errc_name(descriptors.code()));
    else
      log::error("process {} does not hand out its NIC: it is not this user's (uid {}), or another job's",
                 process.slot, geteuid());
    return descriptors.code();
  }
  const auto nic = map_segment(descriptors.value().nic_segment.get());
  // NicView::open or map_segment said why
  if (nic.code() == Errc::unsupported || nic.code() == Errc::no_memory) return nic.code();
  if (!nic.ok()) {
    log::error("process {} has no usable NIC segment: {}", process.slot, errc_name(nic.code()));
    return nic.code();
  }
  link.nic = nic.value();
  if (const std::string theirs = words_of(link.nic), ours = words_of(nic_->view()); theirs != ours) {
    log::error("process {} runs with the clock '{}', this one with '{}': expected the same in all",
               process.slot, theirs, ours);
    return Errc::invalid_state;
  }
  link.strong_hazards = link.nic.header().strong_hazards != 0 || nic_->view().header().strong_hazards != 0;
  if (descriptors.value().memory_file.get() >= 0) {
    auto memory =
        memory::PeerMemory::open(descriptors.value().memory_file.get(), memory::AddressSpace::kSpan);
    if (memory.ok())
      link.memory = std::make_unique<WindowMap>(std::move(memory).value());
    else
      log::warn("process {}: its memory cannot be mapped ({}); going by frame", process.slot,
                errc_name(memory.code()));
  }
  {
    auto contact = std::make_unique<Contact>();
    contact->generation = process.generation;
    contact->doorbell = std::move(descriptors.value().doorbell);
    const NicHeader& header = link.nic.header();
    const auto attach = memory::CrossAttach::probe(static_cast<pid_t>(header.pid), header.attach_word_address,
                                                   header.attach_word);
    if (attach.ok() && config::text("ORRERY_ATTACH") == "on") {
      contact->attach = attach.value();
      contact->can_attach = true;
    }
    const std::lock_guard lock(contacts_mu_);
    const Contact* const known = contacts_[process.slot].load(std::memory_order_relaxed);
    // What a process that had our slot was touching when it died: no thread of ours has announced anything.
    if (known == nullptr || known->generation != process.generation)
      (void)any_hazard(link.nic, nic_->self(), [](std::atomic<std::uint64_t>& word) {
        word.store(0, std::memory_order_release);
        return false;
      });
    contacts_[process.slot].store(contact.get(), std::memory_order_release);
    contact_storage_.push_back(std::move(contact));
  }
  // From now on its death ends what we have outstanding with it.
  const Status watched = watch_death(process);
  if (!watched.ok() && watched.code() != Errc::unreachable) return watched.code();
  return Result<PeerRoute>(std::move(link));
}

bool Runtime::alive(ProcessName process) {
  if (const auto remote = remote_in(process.slot); remote.ok()) return remote.value() == process;
  return job_.directory().is_live({.index = process.slot, .generation = process.generation});
}

void Runtime::ring(ProcessName process) {
  if (process.slot == nic_->self()) return ring_self();
  const Contact* contact = contacts_[process.slot].load(std::memory_order_acquire);
  if (contact == nullptr || contact->generation != process.generation) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto rung = write(contact->doorbell.get(), &one, sizeof one);
}

}  // namespace orrery::nic
