// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/page_watch.hpp"

#include "emu/base/log.hpp"
#include "emu/base/wait.hpp"
#include "emu/clock/virtual_clock.hpp"
#include "emu/memory/fault_handler.hpp"
#include "emu/memory/raw_calls.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

namespace orrery::clock::page_watch {

#if defined(__x86_64__)

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kMaxRanges = 4096;
constexpr std::size_t kMaxHot = 16;
constexpr std::size_t kSites = 8;
constexpr int kSameSite = 64;      // looks of one instruction at one address, with nothing else between
constexpr int kStepsInVain = 256;  // single steps without a loop: the program works on this memory
constexpr std::uint32_t kMaxLate = 1000;  // faults of a thread in a row at one address
constexpr std::int64_t kTickNs = 1'000'000;
constexpr std::uint64_t kTrapFlag = 0x100;

// A range is one word, and a place of its own in a table whose places are used again: whoever reads it in
// between sees the one or the other, never the beginning of one with the end of the next.
//   63..29 page | 28 writable | 27..0 pages; 0: none
constexpr std::uint64_t kMaxPages = (1ull << 28) - 1;
struct PageRange {
  std::uint64_t begin = 0, end = 0;  // end 0: none
  bool writable = false;
};
constexpr std::uint64_t word_of(const PageRange& r) {
  return r.begin / kPage << 29 | std::uint64_t{r.writable} << 28 | (r.end - r.begin) / kPage;
}
constexpr PageRange range_in(std::uint64_t word) {
  const std::uint64_t begin = (word >> 29) * kPage;
  return {begin, begin + (word & kMaxPages) * kPage, (word >> 28 & 1) != 0};
}

// One load instruction of the program that trapped.
struct Site {
  std::uint64_t rip = 0, address = 0, call = 0;
  std::array<greg_t, 16> registers{};
};

// What threads' accesses found closed that was open again when they came to the handler.
struct Late {
  std::atomic<std::uint64_t> address{0};
  std::atomic<std::uint32_t> in_a_row{0};
};

// Static and alone in its pages, so that no watched page holds any of it.
struct alignas(4096) State {
  std::atomic<VirtualClock*> clock{nullptr};
  pid_t pid = 0, tid = 0;
  std::array<std::atomic<std::uint64_t>, kMaxRanges> ranges{};
  std::atomic<std::uint32_t> range_count{0};
  // The table is being changed, or everything is being taken away: a range that goes is not taken away after
  // it went. A signal handler only tries.
  std::atomic<bool> changing{false};
  std::atomic<bool> all_armed{false};  // every range, besides the hot pages
  // Pages that a loop was found at: watched whenever the program runs.
  std::array<std::uint64_t, kMaxHot> hot{};
  std::size_t hot_count = 0;
  std::atomic<bool> hot_armed{false};
  std::array<std::uint64_t, 4> opened{};  // for the single step under way
  std::size_t opened_count = 0;
  std::array<Site, kSites> sites{};
  std::size_t next_site = 0;
  std::uint64_t last_rip = 0, last_address = 0;
  int same_site = 0;
  int steps = 0;  // since the last loop or call
  std::atomic<std::uint64_t> calls{0};
  std::atomic<bool> inside{false};  // the program is in a call of the clock's
  std::uint64_t ticked_at = 0;      // calls as of the last tick
  std::uint32_t ticks = 0, patience = 1;
  std::atomic<std::uint64_t> waits{0};
  std::array<Late, 64> late;  // by thread
  struct sigaction trap_before {};
};
State g;

class Changing {
 public:
  Changing() {
    while (g.changing.exchange(true, std::memory_order_acquire)) yield_cpu();
  }
  ~Changing() { g.changing.store(false, std::memory_order_release); }
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;
};

bool on_program_thread() { return static_cast<pid_t>(syscall(SYS_gettid)) == g.tid; }

PageRange range_of(std::uint64_t address) {
  const std::uint32_t count = g.range_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    const PageRange r = range_in(g.ranges[i].load(std::memory_order_relaxed));
    if (address >= r.begin && address < r.end) return r;
  }
  return {};
}

void protect(std::uint64_t begin, std::uint64_t end, int protection) {
  (void)memory::raw::mprotect(begin, end - begin, protection);
}
int protection_of(const PageRange& r) { return r.writable ? PROT_READ | PROT_WRITE : PROT_READ; }
void open_page(std::uint64_t page) {
  if (const PageRange r = range_of(page); r.end != 0) protect(page, page + kPage, protection_of(r));
}

void arm_all(bool armed) {
  const std::uint32_t count = g.range_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    const PageRange r = range_in(g.ranges[i].load(std::memory_order_relaxed));
    if (r.end != 0) protect(r.begin, r.end, armed ? PROT_NONE : protection_of(r));
  }
  g.all_armed.store(armed, std::memory_order_relaxed);
  g.hot_armed.store(armed, std::memory_order_relaxed);
}

void arm_hot() {
  for (std::size_t i = 0; i < g.hot_count; ++i) protect(g.hot[i], g.hot[i] + kPage, PROT_NONE);
  g.hot_armed.store(true, std::memory_order_relaxed);
}

bool is_hot(std::uint64_t page) {
  return std::find(g.hot.begin(), g.hot.begin() + static_cast<std::ptrdiff_t>(g.hot_count), page) !=
         g.hot.begin() + static_cast<std::ptrdiff_t>(g.hot_count);
}

// Whether the program can only go on reading: it was here before, and nothing of its own has changed since.
bool makes_no_progress(std::uint64_t address, const mcontext_t& context) {
  const auto rip = static_cast<std::uint64_t>(context.gregs[REG_RIP]);
  g.same_site = rip == g.last_rip && address == g.last_address ? g.same_site + 1 : 0;
  g.last_rip = rip;
  g.last_address = address;
  Site now{.rip = rip, .address = address, .call = g.calls.load(std::memory_order_relaxed)};
  // All general registers stand before the instruction pointer.
  std::copy_n(context.gregs, now.registers.size(), now.registers.begin());
  for (Site& site : g.sites) {
    if (site.rip != rip) continue;
    const bool same = site.address == address && site.call == now.call && site.registers == now.registers;
    site = now;
    return same || g.same_site >= kSameSite;
  }
  g.sites[g.next_site++ % kSites] = now;
  return false;
}

void forget_sites() {
  g.sites = {};
  g.same_site = 0;
  g.steps = 0;
}

// A page that was closed is open now: there is nothing to do but to try again. A real fault, whose page
// nobody has closed, is the same one time after time.
bool comes_late(std::uint64_t address) {
  Late& mine = g.late[static_cast<std::size_t>(syscall(SYS_gettid)) % g.late.size()];
  if (mine.address.exchange(address, std::memory_order_relaxed) != address)
    mine.in_a_row.store(0, std::memory_order_relaxed);
  return mine.in_a_row.fetch_add(1, std::memory_order_relaxed) < kMaxLate;
}

// A fault in a watched page. True: the access may be tried again.
bool on_page_fault(const siginfo_t* info, void* context) {
  VirtualClock* const clock = g.clock.load(std::memory_order_relaxed);
  const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
  if (info->si_code != SEGV_ACCERR || getpid() != g.pid) return false;
  const PageRange range = range_of(address);
  if (range.end == 0) return false;
  const std::uint64_t page = address & ~(kPage - 1);
  const bool armed = g.all_armed.load(std::memory_order_relaxed) ||
                     (g.hot_armed.load(std::memory_order_relaxed) && is_hot(page));
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  const bool stores = (machine.gregs[REG_ERR] & 2) != 0;
  if (stores && !range.writable) return false;
  if (clock == nullptr || !armed) return comes_late(address);
  if (!on_program_thread() || g.inside.load(std::memory_order_relaxed)) {
    // Ours, or another thread's: it is let in, and the page stays open until the program goes on.
    open_page(page);
    return true;
  }
  if (!stores && makes_no_progress(address, machine)) {
    arm_all(false);
    if (!is_hot(page)) {
      g.hot[g.hot_count % kMaxHot] = page;
      g.hot_count = std::min(g.hot_count + 1, kMaxHot);
    }
    const int saved = errno;
    clock->wait_for_store();
    errno = saved;
    g.waits.fetch_add(1, std::memory_order_relaxed);
    forget_sites();
    g.patience = 1;
    // program_goes_on() has armed the hot pages again.
  } else if (++g.steps > kStepsInVain) {
    arm_all(false);
    g.hot_count = 0;
    g.patience = std::min(g.patience * 2, 1024u);
    forget_sites();
    return true;
  }
  if (g.opened_count == g.opened.size()) return false;
  g.opened[g.opened_count++] = page;
  open_page(page);
  machine.gregs[REG_EFL] |= static_cast<greg_t>(kTrapFlag);
  return true;
}

// The single step is done.
void on_step(int number, siginfo_t* info, void* context) {
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  if (g.opened_count != 0 && on_program_thread()) {
    machine.gregs[REG_EFL] &= ~static_cast<greg_t>(kTrapFlag);
    const bool all = g.all_armed.load(std::memory_order_relaxed);
    const bool hot = g.hot_armed.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < g.opened_count; ++i) {
      if (all || (hot && is_hot(g.opened[i]))) protect(g.opened[i], g.opened[i] + kPage, PROT_NONE);
    }
    g.opened_count = 0;
    return;
  }
  if ((g.trap_before.sa_flags & SA_SIGINFO) != 0 && g.trap_before.sa_sigaction != nullptr)
    return g.trap_before.sa_sigaction(number, info, context);
  if (g.trap_before.sa_handler != SIG_DFL && g.trap_before.sa_handler != SIG_IGN)
    return g.trap_before.sa_handler(number);
  struct sigaction fallback {};
  fallback.sa_handler = SIG_DFL;
  sigaction(number, &fallback, nullptr);
  (void)raise(number);
}

// Some processor time of the program's thread has passed.
void on_tick(int, siginfo_t*, void*) {
  const std::uint64_t calls = g.calls.load(std::memory_order_relaxed);
  if (g.clock.load(std::memory_order_relaxed) == nullptr) return;
  if (g.inside.load(std::memory_order_relaxed) || g.opened_count != 0 || getpid() != g.pid) return;
  if (calls != g.ticked_at) {
    g.ticked_at = calls;
    g.ticks = 0;
    return;
  }
  if (++g.ticks < g.patience || g.all_armed.load(std::memory_order_relaxed)) return;
  // Another thread's, or the one that was interrupted: the next tick comes.
  if (g.changing.exchange(true, std::memory_order_acquire)) return;
  g.ticks = 0;
  arm_all(true);
  g.changing.store(false, std::memory_order_release);
}

}  // namespace

void start(VirtualClock* clock) {
  g.pid = getpid();
  g.tid = static_cast<pid_t>(syscall(SYS_gettid));
  memory::set_fault_hook(&on_page_fault);
  memory::put_fault_handler_in_front();
  struct sigaction step {};
  step.sa_sigaction = &on_step;
  step.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigaction(SIGTRAP, &step, &g.trap_before);
  struct sigaction tick {};
  tick.sa_sigaction = &on_tick;
  tick.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  const int number = SIGRTMAX - 3;
  sigaction(number, &tick, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = number;
  event._sigev_un._tid = g.tid;
  timer_t timer{};
  const itimerspec every{{0, kTickNs}, {0, kTickNs}};
  if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0 ||
      timer_settime(timer, 0, &every, nullptr) != 0) {
    log::warn("no timer of processor time: a program that polls memory is not noticed");
    return;
  }
  // Release: the handlers see all of it.
  g.clock.store(clock, std::memory_order_release);
}

void watch(std::uint64_t begin, std::uint64_t end, bool writable) {
  if (g.clock.load(std::memory_order_relaxed) == nullptr || (end - begin) / kPage > kMaxPages) return;
  const Changing lock;
  const std::uint32_t count = g.range_count.load(std::memory_order_relaxed);
  std::uint32_t at = 0;
  while (at < count && g.ranges[at].load(std::memory_order_relaxed) != 0) ++at;
  if (at == kMaxRanges) return;
  g.ranges[at].store(word_of({begin, end, writable}), std::memory_order_relaxed);
  if (at == count) g.range_count.store(count + 1, std::memory_order_release);
}

void unwatch(std::uint64_t begin, std::uint64_t end) {
  if (g.clock.load(std::memory_order_relaxed) == nullptr) return;
  const Changing lock;
  for (std::uint32_t i = 0; i < g.range_count.load(std::memory_order_relaxed); ++i) {
    const PageRange r = range_in(g.ranges[i].load(std::memory_order_relaxed));
    if (r.begin != begin || r.end != end) continue;
    g.ranges[i].store(0, std::memory_order_relaxed);
    // A tick since open_all() may have taken it away; nobody gives it back from now on.
    if (g.all_armed.load(std::memory_order_relaxed)) protect(begin, end, protection_of(r));
    return;
  }
}

void open_all() {
  if (g.clock.load(std::memory_order_relaxed) == nullptr || getpid() != g.pid) return;
  // As good as a call: the next tick takes nothing away (on_tick), so what comes now, up to unwatch(), has a
  // millisecond of processor time, many times what it needs.
  g.calls.store(g.calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (!g.all_armed.load(std::memory_order_relaxed) && !g.hot_armed.load(std::memory_order_relaxed)) return;
  arm_all(false);
  g.hot_count = 0;
}

void stop() {
  if (g.clock.load(std::memory_order_relaxed) == nullptr || getpid() != g.pid) return;
  // No tick takes anything away meanwhile. An access of another thread to a page that was not open yet is
  // let in, whenever it comes to the handler.
  const Changing lock;
  g.hot_count = 0;
  arm_all(false);
  g.clock.store(nullptr, std::memory_order_release);
}

void program_calls() {
  g.inside.store(true, std::memory_order_relaxed);
  g.calls.store(g.calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void program_goes_on() {
  if (g.clock.load(std::memory_order_relaxed) != nullptr) {
    g.steps = 0;
    // Somebody's access may have opened them.
    if (g.hot_count != 0 && on_program_thread()) arm_hot();
  }
  g.inside.store(false, std::memory_order_relaxed);
}

std::uint64_t waits() { return g.waits.load(std::memory_order_relaxed); }

#else

void start(VirtualClock*) {}
void watch(std::uint64_t, std::uint64_t, bool) {}
void unwatch(std::uint64_t, std::uint64_t) {}
void open_all() {}
void stop() {}
void program_calls() {}
void program_goes_on() {}
std::uint64_t waits() { return 0; }

#endif

}  // namespace orrery::clock::page_watch
