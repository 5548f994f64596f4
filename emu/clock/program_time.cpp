// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The calls by which a program reads the clock, sleeps and waits for descriptors, served in virtual time.
// Exported by liborrery.so before libc's. Without a virtual clock each of them is libc's and one branch.
#include "emu/clock/program_time.hpp"

#include "emu/base/wait.hpp"
#include "emu/clock/descriptor_feed.hpp"
#include "emu/clock/program_calls.hpp"
#include "emu/clock/virtual_clock.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

namespace orrery::clock {

namespace {

std::atomic<VirtualClock*> g_clock{nullptr};

// Sanitizers read the clock inside their allocator, where nothing may be looked up: libc's is looked up when
// the library is loaded, and until then the kernel answers.
using ClockGettime = int(clockid_t, timespec*);
std::atomic<ClockGettime*> g_clock_gettime{nullptr};
[[gnu::constructor]] void look_up_clock_gettime() {
  ORRERY_REAL(clock_gettime);
  g_clock_gettime.store(real_call, std::memory_order_relaxed);
}
int real_clock_gettime(clockid_t id, timespec* now) {
  auto* const call = g_clock_gettime.load(std::memory_order_relaxed);
  return call != nullptr ? call(id, now) : static_cast<int>(syscall(SYS_clock_gettime, id, now));
}

// A process that will join a job with virtual time finds time 0 until then, so that its clock has one
// beginning. One that looks so often that it may be waiting for a time finds real time pass from there, and
// goes on from there when it joins.
constexpr std::uint64_t kLooksBefore = 100'000;
std::atomic<bool> g_joins_later{false};
std::atomic<std::uint64_t> g_looks_before{0};
std::atomic<std::int64_t> g_real_from{0}, g_before{0};  // ns
[[gnu::constructor]] void find_out_whether_it_joins() {
  const auto has = [](const char* name) {
    const char* const value = ::secure_getenv(name);
    return value != nullptr && *value != '\0';
  };
  const char* const kind = ::secure_getenv("ORRERY_CLOCK");
  if (!has("ORRERY_MACHINE") || (has("ORRERY_CLOCK") && std::string_view(kind) != "virtual")) return;
  g_joins_later = has("PMI_RANK") || has("PMIX_RANK") || has("SLURM_PROCID");
}

// Libraries whose threads and timers belong to the launcher or to a real network, by how their names begin.
constexpr std::string_view kRuntimeLibraries[] = {
    "liborrery", "libugni",    "libpmi",   "libpmix", "libprrte",   "libopen-pal", "libopen-rte",
    "libevent",  "libfabric",  "libhwloc", "libucs",  "libuct",     "libucp",      "libucm",
    "libmunge",  "libslurm",   "libpsm2",  "libnl-",  "libibverbs", "mca_ess_",    "mca_errmgr_",
    "mca_pmix_", "mca_state_", "mca_oob_", "mca_iof_"};

// Of them, a message-passing library's engine of events, which the program's own thread runs in the course of
// its calls: its timers say how often in real time to look for something.
constexpr std::string_view kEventEngines[] = {"libopen-pal", "libevent"};

// Libraries that sleep between looks only where they wait for the launcher: what they wait for is outside.
constexpr std::string_view kMessageLibraries[] = {"libmpi", "liboshmem"};

// ThreadSanitizer passes the program's calls on, from functions that it exports. The others that read the
// clock are its own: of its thread, and of its allocator, which is at work when a thread has ended.
constexpr std::string_view kSanitizers[] = {"libtsan"};

enum class Caller : std::uint64_t { program = 0, runtime = 1, message_library = 2, event_engine = 3 };

// Whether libevent is Open MPI's here, and not the program's own.
bool runs_event_engine() {
  static const bool found = [] {
    void* const engine = dlopen("libopen-pal.so.40", RTLD_LAZY | RTLD_NOLOAD);
    if (engine != nullptr) dlclose(engine);
    return engine != nullptr;
  }();
  return found;
}

Caller kind_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return Caller::program;
  std::string_view name = info.dli_fname;
  if (const auto slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  const auto is_one_of = [&](const auto& libraries) {
    return std::any_of(std::begin(libraries), std::end(libraries),
                       [&](std::string_view library) { return name.starts_with(library); });
  };
  if (is_one_of(kEventEngines) && runs_event_engine()) return Caller::event_engine;
  if (is_one_of(kRuntimeLibraries)) return Caller::runtime;
  if (is_one_of(kSanitizers)) return info.dli_sname != nullptr ? Caller::program : Caller::runtime;
  return is_one_of(kMessageLibraries) ? Caller::message_library : Caller::program;
}

// dladdr() takes a lock and a search: answers are kept by the caller's address.
Caller caller_of(const void* caller) {
  constexpr std::size_t kEntries = 256;
  static std::atomic<std::uint64_t> known[kEntries];
  const auto address = reinterpret_cast<std::uint64_t>(caller);
  auto& entry = known[(address ^ address >> 12) % kEntries];
  const std::uint64_t seen = entry.load(std::memory_order_relaxed);
  if (seen >> 2 == address) return static_cast<Caller>(seen & 3);
  const Caller kind = kind_of(caller);
  entry.store(address << 2 | static_cast<std::uint64_t>(kind), std::memory_order_relaxed);
  return kind;
}
bool called_by_runtime(const void* caller) {
  const Caller kind = caller_of(caller);
  return kind == Caller::runtime || kind == Caller::event_engine;
}
bool called_by_message_library(const void* caller) { return caller_of(caller) == Caller::message_library; }

}  // namespace

VirtualClock* clock_for(const void* caller) {
  VirtualClock* const clock = g_clock.load(std::memory_order_acquire);
  if (clock == nullptr) [[likely]]
    return nullptr;
  return is_runtime_thread() || VirtualClock::is_inside() || called_by_runtime(caller) ? nullptr : clock;
}

VirtualClock* clock_for_thread() {
  VirtualClock* const clock = g_clock.load(std::memory_order_acquire);
  if (clock == nullptr) [[likely]]
    return nullptr;
  return is_runtime_thread() || VirtualClock::is_inside() || !clock->counts_thread() ? nullptr : clock;
}
VirtualClock* clock_of_process() { return g_clock.load(std::memory_order_acquire); }

namespace {

// How much time passes for an engine of events when the program has looked at the NIC in vain: more than the
// length of any timer that looks for something, so that each round of the engine looks for everything, not
// for what real time makes due. None within a round: a timer that begins itself again would not let it end.
constexpr std::int64_t kEngineTick = 20'000'000;  // ns
// How far it may be behind real time. A library of the launcher's has timers that the program's thread adds
// and a thread of its own ends: PMIx gives its server 2 s, of which a program that looks little had none.
constexpr std::int64_t kEngineMostBehind = 100'000'000;  // ns

// What an engine of events finds that a thread of the program runs: time passes by the looks of the one that
// makes time pass. A thread of the launcher's that runs an engine of its own finds real time, but none before
// that: PMIx's is told to end by an event that the program's thread adds, due at once by the program's time.
// False: it has real time.
bool read_engine_time(const void* caller, timespec* now) {
  VirtualClock* const clock = g_clock.load(std::memory_order_acquire);
  if (clock == nullptr || is_runtime_thread() || VirtualClock::is_inside() ||
      caller_of(caller) != Caller::event_engine)
    return false;
  static std::atomic<std::int64_t> time_of_engine{monotonic_ns()};
  static std::atomic<std::uint64_t> looks{0};
  if (clock->is_leader()) {
    if (const std::uint64_t made = clock->looks_made();
        looks.exchange(made, std::memory_order_relaxed) != made)
      time_of_engine.fetch_add(kEngineTick, std::memory_order_relaxed);
  }
  std::int64_t time = time_of_engine.load(std::memory_order_relaxed);
  const std::int64_t real = monotonic_ns();
  const bool is_launchers = !VirtualClock::knows_thread() && !clock->is_leader();
  if (!is_launchers && real - time > kEngineMostBehind)
    time_of_engine.compare_exchange_strong(time, real, std::memory_order_relaxed);
  if (is_launchers || real - time > kEngineMostBehind) time = std::max(time, real);
  *now = {static_cast<time_t>(time / kNs), static_cast<long>(time % kNs)};
  return true;
}

// Whether the caller finds virtual time though there is no clock yet.
bool is_before(const void* caller) {
  return g_joins_later.load(std::memory_order_relaxed) &&
         g_clock.load(std::memory_order_relaxed) == nullptr && !is_runtime_thread() &&
         !called_by_runtime(caller);
}

// Picos since the beginning, of one that has not joined.
Picos time_before() {
  if (g_looks_before.fetch_add(1, std::memory_order_relaxed) < kLooksBefore)
    return Picos{g_before.load(std::memory_order_relaxed) * 1000};
  const std::int64_t now = monotonic_ns();
  std::int64_t from = 0;
  if (!g_real_from.compare_exchange_strong(from, now))
    g_before = std::max<std::int64_t>(g_before, now - from);
  return Picos{g_before.load(std::memory_order_relaxed) * 1000};
}

}  // namespace

bool is_steady(clockid_t id) {
  return id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_RAW || id == CLOCK_MONOTONIC_COARSE ||
         id == CLOCK_BOOTTIME;
}
bool is_wall(clockid_t id) { return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI; }

timespec timespec_of(Picos time, std::int64_t start) {
  const std::int64_t before = g_clock.load(std::memory_order_relaxed) == nullptr ? 0 : g_before.load();
  const std::int64_t ns = time.count() / 1000 + before;
  return {static_cast<time_t>(start + ns / kNs), static_cast<long>(ns % kNs)};
}
std::int64_t VirtualClock::program_ns() {
  const timespec t = timespec_of(now(), kMonotonicStart);
  return t.tv_sec * kNs + t.tv_nsec;
}
Picos duration_of(const timespec& t) {
  const std::int64_t seconds = std::min<std::int64_t>(t.tv_sec, 4'000'000);  // Picos hold 106 days
  return Picos{(seconds * kNs + t.tv_nsec) * 1000};
}
Picos point_of(const timespec& t, clockid_t id) {
  timespec since = t;
  since.tv_sec -= is_wall(id) ? kRealtimeStart : kMonotonicStart;
  if (since.tv_sec < 0) return Picos{};
  return std::max(Picos{}, duration_of(since) - Picos{g_before.load(std::memory_order_relaxed) * 1000});
}
bool is_valid(const timespec* t) {
  return t != nullptr && t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < kNs;
}
timespec a_moment_from_now(clockid_t id) {
  timespec now{};
  real_clock_gettime(id, &now);
  const std::int64_t ns = now.tv_nsec + 1'000'000;
  return {now.tv_sec + static_cast<time_t>(ns / kNs), static_cast<long>(ns % kNs)};
}

namespace {

void sleep_for(VirtualClock& clock, Picos duration) { clock.nap(duration); }

// Descriptors are the real world's: they are looked at now, and again whenever something happens to this PE,
// until `duration` of virtual time is over. `look` returns what the call returns, 0 for nothing yet.
template <typename Look>
int wait_for_descriptors(VirtualClock& clock, std::optional<Picos> duration, Look look) {
  if (!duration) {
    // For ever: what comes, comes from outside the clock, or by a thread of the runtime.
    for (;;) {
      feed_descriptors();
      const int found = look(0);
      if (found != 0) return found;
      clock.idle_outside();
    }
  }
  feed_descriptors();
  int found = look(0);
  if (found != 0 || *duration <= Picos{}) {
    if (found == 0) clock.idle(__builtin_return_address(0));
    return found;
  }
  const Picos deadline = clock.now() + *duration;
  for (;;) {
    const bool touched = clock.wait(deadline);
    feed_descriptors();
    // Threads of the runtime that pass an event on to a descriptor need a moment.
    found = look(touched ? 1 : 0);
    if (found != 0 || !touched) return found;
  }
}

// What select() is given, which each look changes.
class DescriptorSets {
 public:
  DescriptorSets(fd_set* reads, fd_set* writes, fd_set* errors) : sets_{reads, writes, errors} {
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      if (sets_[i] != nullptr) given_[i] = *sets_[i];
    }
  }
  void restore() const {
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      if (sets_[i] != nullptr) *sets_[i] = given_[i];
    }
  }

 private:
  const std::array<fd_set*, 3> sets_;
  std::array<fd_set, 3> given_;
};

void forget_in_child() {
  g_joins_later = false;
  g_clock.store(nullptr, std::memory_order_relaxed);
}

}  // namespace

namespace {

// The end of a thread that has been in the clock.
struct AtEnd {
  bool is_known = false;
  ~AtEnd() {
    if (VirtualClock* const clock = clock_for_thread(); is_known && clock != nullptr) clock->thread_ends();
  }
};
thread_local AtEnd t_at_end;

}  // namespace

void serve_program(VirtualClock* clock) {
  VirtualClock::tell_of_threads([] { t_at_end.is_known = true; });
  pthread_atfork(nullptr, nullptr, forget_in_child);
  g_clock.store(clock, std::memory_order_release);
}

}  // namespace orrery::clock

// Begins a call that tells the time of day, which is libc's unless this process has, or will have, a clock.
#define ORRERY_TIME_OR_REAL(name, ...)                                             \
  ORRERY_REAL(name);                                                               \
  const void* const caller = __builtin_return_address(0);                          \
  ::orrery::clock::VirtualClock* const clock = ::orrery::clock::clock_for(caller); \
  const bool before = clock == nullptr && ::orrery::clock::is_before(caller);      \
  if (clock == nullptr && !before) [[likely]]                                      \
    return real_call(__VA_ARGS__);                                                 \
  const timespec time_now = ::orrery::clock::timespec_of(                          \
      before ? ::orrery::clock::time_before() : clock->read(), ::orrery::clock::kRealtimeStart)

using orrery::Picos;
using orrery::clock::VirtualClock;
namespace oc = orrery::clock;

extern "C" {

int clock_gettime(clockid_t id, timespec* now) {
  const void* const caller = __builtin_return_address(0);
  VirtualClock* const clock = oc::clock_for(caller);
  if (clock == nullptr && oc::is_steady(id) && oc::read_engine_time(caller, now)) return 0;
  const bool before = clock == nullptr && oc::is_before(caller);
  if ((clock == nullptr && !before) || !(oc::is_steady(id) || oc::is_wall(id))) [[likely]]
    return oc::real_clock_gettime(id, now);
  *now = oc::timespec_of(before ? oc::time_before() : clock->read(),
                         oc::is_wall(id) ? oc::kRealtimeStart : oc::kMonotonicStart);
  return 0;
}

int gettimeofday(timeval* __restrict now, void* __restrict zone) {
  ORRERY_TIME_OR_REAL(gettimeofday, now, zone);
  *now = {time_now.tv_sec, time_now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* now) {
  ORRERY_TIME_OR_REAL(time, now);
  if (now != nullptr) *now = time_now.tv_sec;
  return time_now.tv_sec;
}

int timespec_get(timespec* now, int base) {
  if (base != TIME_UTC) {
    ORRERY_REAL(timespec_get);
    return real_call(now, base);
  }
  ORRERY_TIME_OR_REAL(timespec_get, now, base);
  *now = time_now;
  return base;
}

int clock_nanosleep(clockid_t id, int flags, const timespec* request, timespec* left) {
  ORRERY_CLOCK_OR_REAL(clock_nanosleep, id, flags, request, left);
  if (!oc::is_valid(request) || !(oc::is_steady(id) || oc::is_wall(id)))
    return real_call(id, flags, request, left);
  if ((flags & TIMER_ABSTIME) != 0)
    clock->sleep_until(oc::point_of(*request, id));
  else
    oc::sleep_for(*clock, oc::duration_of(*request));
  return 0;
}

int nanosleep(const timespec* request, timespec* left) {
  ORRERY_CLOCK_OR_REAL(nanosleep, request, left);
  if (!oc::is_valid(request)) return real_call(request, left);
  oc::sleep_for(*clock, oc::duration_of(*request));
  return 0;
}

int usleep(useconds_t us) {
  ORRERY_CLOCK_OR_REAL(usleep, us);
  if (oc::called_by_message_library(__builtin_return_address(0))) {
    clock->idle_outside();
    return 0;
  }
  oc::sleep_for(*clock, Picos{std::int64_t{us} * 1'000'000});
  return 0;
}

unsigned sleep(unsigned seconds) {
  ORRERY_CLOCK_OR_REAL(sleep, seconds);
  oc::sleep_for(*clock, oc::duration_of({static_cast<time_t>(seconds), 0}));
  return 0;
}

// A program that yields waits for another thread: as good as a look in vain. An engine that yields after each
// look in vain has given the processor to others in that look, where they had something to do. Beside other
// busy programs each more would cost a share of the processor.
int sched_yield() noexcept {
  constexpr std::uint32_t kYieldEvery = 64;
  thread_local std::uint32_t of_engine = 0;
  if (const VirtualClock* const own = oc::clock_for_thread();
      own != nullptr && !own->any_awake() &&
      oc::caller_of(__builtin_return_address(0)) == oc::Caller::event_engine &&
      ++of_engine % kYieldEvery != 0)
    return 0;
  ORRERY_CLOCK_OR_REAL(sched_yield);
  if (clock->any_awake()) (void)real_call();
  clock->idle(reinterpret_cast<const void*>(&sched_yield));
  return 0;
}

int poll(pollfd* files, nfds_t count, int timeout_ms) {
  ORRERY_CLOCK_OR_REAL(poll, files, count, timeout_ms);
  std::optional<Picos> duration;
  if (timeout_ms >= 0) duration = Picos{std::int64_t{timeout_ms} * 1'000'000'000};
  return oc::wait_for_descriptors(*clock, duration, [&](int ms) { return real_call(files, count, ms); });
}

int ppoll(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  ORRERY_CLOCK_OR_REAL(ppoll, files, count, timeout, mask);
  if (timeout != nullptr && !oc::is_valid(timeout)) return real_call(files, count, timeout, mask);
  std::optional<Picos> duration;
  if (timeout != nullptr) duration = oc::duration_of(*timeout);
  return oc::wait_for_descriptors(*clock, duration, [&](int ms) {
    const timespec brief{0, ms * 1'000'000};
    return real_call(files, count, ms < 0 ? nullptr : &brief, mask);
  });
}

int epoll_wait(int epoll, epoll_event* events, int most, int timeout_ms) {
  ORRERY_CLOCK_OR_REAL(epoll_wait, epoll, events, most, timeout_ms);
  std::optional<Picos> duration;
  if (timeout_ms >= 0) duration = Picos{std::int64_t{timeout_ms} * 1'000'000'000};
  return oc::wait_for_descriptors(*clock, duration,
                                  [&](int ms) { return real_call(epoll, events, most, ms); });
}

int epoll_pwait(int epoll, epoll_event* events, int most, int timeout_ms, const sigset_t* mask) {
  ORRERY_CLOCK_OR_REAL(epoll_pwait, epoll, events, most, timeout_ms, mask);
  std::optional<Picos> duration;
  if (timeout_ms >= 0) duration = Picos{std::int64_t{timeout_ms} * 1'000'000'000};
  return oc::wait_for_descriptors(*clock, duration,
                                  [&](int ms) { return real_call(epoll, events, most, ms, mask); });
}

int epoll_pwait2(int epoll, epoll_event* events, int most, const timespec* timeout, const sigset_t* mask) {
  ORRERY_CLOCK_OR_REAL(epoll_pwait2, epoll, events, most, timeout, mask);
  if (timeout != nullptr && !oc::is_valid(timeout)) return real_call(epoll, events, most, timeout, mask);
  std::optional<Picos> duration;
  if (timeout != nullptr) duration = oc::duration_of(*timeout);
  return oc::wait_for_descriptors(*clock, duration, [&](int ms) {
    const timespec brief{0, ms * 1'000'000};
    return real_call(epoll, events, most, ms < 0 ? nullptr : &brief, mask);
  });
}

int select(int count, fd_set* __restrict reads, fd_set* __restrict writes, fd_set* __restrict errors,
           timeval* __restrict timeout) {
  ORRERY_CLOCK_OR_REAL(select, count, reads, writes, errors, timeout);
  std::optional<Picos> duration;
  if (timeout != nullptr) {
    if (timeout->tv_sec < 0 || timeout->tv_usec < 0) return real_call(count, reads, writes, errors, timeout);
    duration = oc::duration_of(
        {timeout->tv_sec + timeout->tv_usec / 1'000'000, timeout->tv_usec % 1'000'000 * 1000});
  }
  const oc::DescriptorSets sets(reads, writes, errors);
  return oc::wait_for_descriptors(*clock, duration, [&](int ms) {
    sets.restore();
    timeval brief{0, ms * 1000};
    return real_call(count, reads, writes, errors, ms < 0 ? nullptr : &brief);
  });
}

int pselect(int count, fd_set* __restrict reads, fd_set* __restrict writes, fd_set* __restrict errors,
            const timespec* __restrict timeout, const sigset_t* __restrict mask) {
  ORRERY_CLOCK_OR_REAL(pselect, count, reads, writes, errors, timeout, mask);
  if (timeout != nullptr && !oc::is_valid(timeout))
    return real_call(count, reads, writes, errors, timeout, mask);
  std::optional<Picos> duration;
  if (timeout != nullptr) duration = oc::duration_of(*timeout);
  const oc::DescriptorSets sets(reads, writes, errors);
  return oc::wait_for_descriptors(*clock, duration, [&](int ms) {
    sets.restore();
    const timespec brief{0, ms * 1'000'000};
    return real_call(count, reads, writes, errors, ms < 0 ? nullptr : &brief, mask);
  });
}

}  // extern "C"
