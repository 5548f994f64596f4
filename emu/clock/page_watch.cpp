// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/page_watch.hpp"

#include "emu/base/log.hpp"
#include "emu/base/timed_path.hpp"
#include "emu/base/wait.hpp"
#include "emu/clock/loop_watch.hpp"
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
constexpr std::int64_t kTickNs = 1'000'000;
constexpr std::uint64_t kTrapFlag = 0x100;

// A range is one word, and a place of its own in a table whose places are used again: a reader in between
// sees the one or the other, never the beginning of one with the end of the next.
//   63..28 page | 27..0 pages; 0: none
constexpr std::uint64_t kMaxPages = (1ull << 28) - 1;
struct PageRange {
  std::uint64_t begin = 0, end = 0;  // end 0: none
};
constexpr std::uint64_t word_of(const PageRange& r) {
  return r.begin / kPage << 28 | (r.end - r.begin) / kPage;
}
constexpr PageRange range_in(std::uint64_t word) {
  const std::uint64_t begin = (word >> 28) * kPage;
  return {begin, begin + (word & kMaxPages) * kPage};
}

// What is closed and the number of that closing, in one word: a handler on another thread reads both at
// once. The word is set before the first page is closed, and reset after the last one is open again. So a
// page that the word does not cover is open, and stays open for as long as the word is the same.
//   63..2 number of the closing | 1..0 what
enum class Closed : std::uint64_t { nothing = 0, hot_pages = 1, everything = 2 };
constexpr Closed closed_in(std::uint64_t word) { return static_cast<Closed>(word & 3); }
constexpr std::uint64_t next_closing(std::uint64_t word, Closed what) {
  return ((word >> 2) + 1) << 2 | static_cast<std::uint64_t>(what);
}
constexpr std::uint64_t with_nothing_closed(std::uint64_t word) { return word & ~std::uint64_t{3}; }

// One load instruction of the program that trapped.
struct Site {
  std::uint64_t rip = 0, address = 0, call = 0, stores = 0;
  std::array<greg_t, 16> registers{};
};

// This thread's last access that found closed what was open again when it came to the handler.
struct Late {
  std::uint64_t address = 0, closing = 0;
  bool any = false;
};
// initial-exec: no call, and no allocation, to reach it from a signal handler.
__attribute__((tls_model("initial-exec"))) thread_local constinit Late t_late{};

// Static and alone in its pages, so that no watched page holds any of it.
struct alignas(4096) State {
  std::atomic<VirtualClock*> clock{nullptr};
  pid_t pid = 0, tid = 0;
  std::array<std::atomic<std::uint64_t>, kMaxRanges> ranges{};
  std::atomic<std::uint32_t> range_count{0};
  // The thread that changes the table, or what is closed; 0: none. A page of a range that goes is not closed
  // after it went, nor one that another thread is opening.
  std::atomic<pid_t> changing{0};
  std::atomic<std::uint64_t> closed{0};
  std::atomic<bool> let_in{false};  // another access was, since everything was closed last
  // Pages that a loop was found at: watched whenever the program runs. Changed while nothing is closed.
  std::array<std::atomic<std::uint64_t>, kMaxHot> hot{};
  std::atomic<std::size_t> hot_count{0};
  std::size_t next_hot = 0;
  std::array<std::uint64_t, 4> opened{};  // for the single step under way
  std::size_t opened_count = 0;
  std::array<Site, kSites> sites{};
  std::size_t next_site = 0;
  std::uint64_t last_rip = 0, last_address = 0, last_stores = 0;
  std::uint64_t last_stored = 0;
  int same_site = 0;
  int steps = 0;  // since the last loop or call
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> stores{0};  // of other threads, to pages that were closed
  std::atomic<bool> inside{false};       // the program is in a call of the clock's
  std::uint64_t ticked_at = 0;           // calls as of the last tick
  std::uint32_t ticks = 0, patience = 1;
  std::atomic<std::uint64_t> waits{0};
  struct sigaction trap_before {};
};
State g;

pid_t own_tid() { return static_cast<pid_t>(syscall(SYS_gettid)); }
bool on_program_thread() { return own_tid() == g.tid; }

// Holds `changing`. Not where this thread has it already and was interrupted (by a handler of the program's
// that met a closed page): it must not wait for itself. Nothing under it reads watched memory or blocks.
class Changing {
 public:
  explicit Changing(bool only_try = false) {
    const pid_t self = own_tid();
    for (;;) {
      pid_t holder = 0;
      held_ = g.changing.compare_exchange_strong(holder, self, std::memory_order_acquire,
                                                 std::memory_order_relaxed);
      if (held_ || holder == self || only_try) return;
      yield_cpu();
    }
  }
  ~Changing() {
    if (held_) g.changing.store(0, std::memory_order_release);
  }
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;
  bool held() const { return held_; }

 private:
  bool held_ = false;
};

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
constexpr int kOpen = PROT_READ | PROT_WRITE;
void open_page(std::uint64_t page) {
  if (range_of(page).end != 0) protect(page, page + kPage, kOpen);
}

void protect_ranges(int protection) {
  const std::uint32_t count = g.range_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    const PageRange r = range_in(g.ranges[i].load(std::memory_order_relaxed));
    if (r.end != 0) protect(r.begin, r.end, protection);
  }
}

// REQUIRES of the three: `changing` is held.
void close_all() {
  g.let_in.store(false, std::memory_order_relaxed);
  // Before any page is: an access to a closed page always finds that it is.
  g.closed.store(next_closing(g.closed.load(std::memory_order_relaxed), Closed::everything),
                 std::memory_order_release);
  protect_ranges(PROT_NONE);
}

// An access of another thread may have opened some of them, or all, since they were closed last.
void close_hot() {
  const std::uint64_t before = g.closed.load(std::memory_order_relaxed);
  if (closed_in(before) != Closed::everything)
    g.closed.store(next_closing(before, Closed::hot_pages), std::memory_order_release);
  for (std::size_t i = 0; i < g.hot_count.load(std::memory_order_relaxed); ++i) {
    const std::uint64_t page = g.hot[i].load(std::memory_order_relaxed);
    // Not one whose range went: no thread would open it again.
    if (range_of(page).end != 0) protect(page, page + kPage, PROT_NONE);
  }
}

void open_everything() {
  if (closed_in(g.closed.load(std::memory_order_relaxed)) == Closed::nothing) return;
  protect_ranges(kOpen);
  // Release, and after the last page is open: a reader of this finds them all open.
  g.closed.store(with_nothing_closed(g.closed.load(std::memory_order_relaxed)), std::memory_order_release);
}

bool is_hot(std::uint64_t page) {
  const std::size_t count = g.hot_count.load(std::memory_order_relaxed);
  return std::any_of(g.hot.begin(), g.hot.begin() + static_cast<std::ptrdiff_t>(count),
                     [page](const auto& hot) { return hot.load(std::memory_order_relaxed) == page; });
}

bool covers(std::uint64_t closed, std::uint64_t page) {
  const Closed what = closed_in(closed);
  return what == Closed::everything || (what == Closed::hot_pages && is_hot(page));
}

// surely: the program can only go on reading; it was here before, and nothing of its own has changed since.
// likely: it reads one word again and again; it may count how often, or compute something.
enum class Waits : std::uint8_t { no, likely, surely };
Waits waits_at(std::uint64_t address, const mcontext_t& context) {
  const auto rip = static_cast<std::uint64_t>(context.gregs[REG_RIP]);
  g.same_site = rip == g.last_rip && address == g.last_address ? g.same_site + 1 : 0;
  g.last_rip = rip;
  g.last_address = address;
  Site now{.rip = rip,
           .address = address,
           .call = g.calls.load(std::memory_order_relaxed),
           .stores = g.stores.load(std::memory_order_relaxed)};
  // Another thread of the program is at work there: what is waited for may be its business.
  if (now.stores != g.last_stores) g.same_site = 0;
  g.last_stores = now.stores;
  // All general registers stand before the instruction pointer.
  std::copy_n(context.gregs, now.registers.size(), now.registers.begin());
  for (Site& site : g.sites) {
    if (site.rip != rip) continue;
    const bool same = site.address == address && site.call == now.call && site.stores == now.stores &&
                      site.registers == now.registers;
    site = now;
    if (same) return Waits::surely;
    return g.same_site >= kSameSite ? Waits::likely : Waits::no;
  }
  g.sites[g.next_site++ % kSites] = now;
  return Waits::no;
}

// The program stores: one that fills memory goes on, though it reads one word all the time.
void note_store(std::uint64_t address) {
  if (address != g.last_stored) g.same_site = 0;
  g.last_stored = address;
}

void forget_hot() {
  g.hot_count.store(0, std::memory_order_relaxed);
  g.next_hot = 0;
}

void forget_sites() {
  g.sites = {};
  g.same_site = 0;
  g.steps = 0;
}

// REQUIRES: `changing` is held. The program works on its memory: it is let do so for longer.
void let_it_work() {
  open_everything();
  forget_hot();
  g.patience = std::min(g.patience * 2, 1024u);
  forget_sites();
}

// The page is not closed, by a word `closed` that was read before that was found out: it was when the access
// was made, or a foreign protection is in its way. The access is tried again; when it fails again
// though nothing was closed meanwhile, no thread of this unit did it.
bool comes_late(std::uint64_t address, std::uint64_t closed) {
  if (t_late.any && t_late.address == address && t_late.closing == closed) {
    t_late.any = false;
    return false;
  }
  t_late = {.address = address, .closing = closed, .any = true};
  return true;
}

// A fault in a page that is or was watched. True: the access may be tried again.
bool on_page_fault(const siginfo_t* info, void* context) {
  VirtualClock* const clock = g.clock.load(std::memory_order_relaxed);
  const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
  if (info->si_code != SEGV_ACCERR || getpid() != g.pid) return false;
  const std::uint64_t page = address & ~(kPage - 1);
  // Acquire, and before the ranges are: with the pages as they were when it was stored.
  const std::uint64_t closed = g.closed.load(std::memory_order_acquire);
  if (clock == nullptr || range_of(address).end == 0 || !covers(closed, page))
    return comes_late(address, closed);
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  const bool stores = (machine.gregs[REG_ERR] & 2) != 0;
  if (!on_program_thread() || g.inside.load(std::memory_order_relaxed)) {
    // Ours, or another thread's: it is let in, and the page stays open until the program goes on, or the next
    // tick.
    open_page(page);
    if (stores) g.stores.fetch_add(1, std::memory_order_relaxed);
    g.let_in.store(true, std::memory_order_relaxed);
    return true;
  }
  if (stores) note_store(address);
  if (const Waits waits = stores ? Waits::no : waits_at(address, machine); waits != Waits::no) {
    {
      const Changing lock;
      open_everything();
      if (!is_hot(page)) {
        g.hot[g.next_hot++ % kMaxHot].store(page, std::memory_order_relaxed);
        g.hot_count.store(std::min(g.next_hot, kMaxHot), std::memory_order_relaxed);
      }
    }
    const int saved = errno;
    const bool waited = clock->wait_for_store(waits == Waits::surely);
    errno = saved;
    if (!waited) {
      const Changing lock;
      let_it_work();
      return true;
    }
    g.waits.fetch_add(1, std::memory_order_relaxed);
    forget_sites();
    g.patience = 1;
    // program_goes_on() has closed the hot pages again.
  } else if (++g.steps > kStepsInVain) {
    const Changing lock;
    let_it_work();
    return true;
  }
  if (g.opened_count == g.opened.size()) return false;
  g.opened[g.opened_count++] = page;
  open_page(page);
  machine.gregs[REG_EFL] |= static_cast<greg_t>(kTrapFlag);
  return true;
}

// Pages that were opened for a step are closed again.
void close_opened() {
  const Changing lock;
  const std::uint64_t closed = g.closed.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < g.opened_count; ++i) {
    const std::uint64_t page = g.opened[i];
    if (lock.held() && covers(closed, page) && range_of(page).end != 0)
      protect(page, page + kPage, PROT_NONE);
  }
  g.opened_count = 0;
}

// The single step is done.
void on_step(int number, siginfo_t* info, void* context) {
  auto& program = *static_cast<ucontext_t*>(context);
  if ((g.opened_count != 0 || loop_watch::steps()) && on_program_thread()) {
    if (g.opened_count != 0) close_opened();
    VirtualClock* const clock = g.clock.load(std::memory_order_relaxed);
    if (!loop_watch::steps() || clock == nullptr) return loop_watch::end(program);
    return loop_watch::step(*clock, g.calls, g.inside.load(std::memory_order_relaxed), program);
  }
  // In a child process, or one step more than was counted on.
  if (info->si_code == TRAP_TRACE && (getpid() != g.pid || g.trap_before.sa_handler == SIG_DFL))
    return loop_watch::end(program);
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
void on_tick(int, siginfo_t*, void* context) {
  const std::uint64_t calls = g.calls.load(std::memory_order_relaxed);
  if (g.clock.load(std::memory_order_relaxed) == nullptr) return;
  if (loop_watch::steps()) return loop_watch::tick_in_steps(*static_cast<ucontext_t*>(context));
  if (g.inside.load(std::memory_order_relaxed) || g.opened_count != 0 || getpid() != g.pid) return;
  if (calls != g.ticked_at) {
    g.ticked_at = calls;
    g.ticks = 0;
    return;
  }
  const auto everything_is = [] {
    return closed_in(g.closed.load(std::memory_order_relaxed)) == Closed::everything &&
           !g.let_in.load(std::memory_order_relaxed);
  };
  // It reads nothing that peers may write: it computes, or reads something else in a loop.
  if (everything_is()) {
    if (loop_watch::tick(calls)) loop_watch::begin(calls, *static_cast<ucontext_t*>(context));
    return;
  }
  if (++g.ticks < g.patience) return;
  // Another thread has it, or the one that was interrupted: the next tick comes.
  const Changing lock(true);
  if (!lock.held()) return;
  g.ticks = 0;
  close_all();
}

}  // namespace

void start(VirtualClock* clock) {
  g.pid = getpid();
  g.tid = static_cast<pid_t>(syscall(SYS_gettid));
  g.inside.store(false, std::memory_order_relaxed);  // as the end of a clock before this one left it
  memory::set_fault_hook(&on_page_fault);
  memory::put_fault_handler_in_front();
  struct sigaction step {};
  step.sa_sigaction = &on_step;
  step.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  const int number = SIGRTMAX - 3;
  sigaddset(&step.sa_mask, number);  // no tick takes the handler for the program
  sigaction(SIGTRAP, &step, &g.trap_before);
  struct sigaction tick {};
  tick.sa_sigaction = &on_tick;
  tick.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
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

void watch(std::uint64_t begin, std::uint64_t end) {
  if (g.clock.load(std::memory_order_relaxed) == nullptr || (end - begin) / kPage > kMaxPages) return;
  const Changing lock;
  const std::uint32_t count = g.range_count.load(std::memory_order_relaxed);
  std::uint32_t at = 0;
  while (at < count && g.ranges[at].load(std::memory_order_relaxed) != 0) ++at;
  if (at == kMaxRanges) return;
  g.ranges[at].store(word_of({begin, end}), std::memory_order_relaxed);
  if (at == count) g.range_count.store(count + 1, std::memory_order_release);
}

void unwatch(std::uint64_t begin, std::uint64_t end) {
  if (g.clock.load(std::memory_order_relaxed) == nullptr) return;
  const Changing lock;
  for (std::uint32_t i = 0; i < g.range_count.load(std::memory_order_relaxed); ++i) {
    const PageRange r = range_in(g.ranges[i].load(std::memory_order_relaxed));
    if (r.begin != begin || r.end != end) continue;
    // It may have been closed since open_all(), and no thread opens it from now on. Before it goes, so that
    // an access which finds no range finds the page open.
    if (closed_in(g.closed.load(std::memory_order_relaxed)) != Closed::nothing) protect(begin, end, kOpen);
    g.ranges[i].store(0, std::memory_order_release);
    return;
  }
}

void open_all() {
  if (g.clock.load(std::memory_order_relaxed) == nullptr || getpid() != g.pid) return;
  // As good as a call: the next tick takes nothing away (on_tick), so what comes now, up to unwatch(), has a
  // millisecond of processor time, many times what it needs.
  g.calls.store(g.calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const Changing lock;
  if (closed_in(g.closed.load(std::memory_order_relaxed)) == Closed::nothing) return;
  open_everything();
  forget_hot();
}

void stop() {
  if (g.clock.load(std::memory_order_relaxed) == nullptr || getpid() != g.pid) return;
  // No tick takes anything away meanwhile. An access of another thread to a page that was not open yet is
  // let in, whenever it comes to the handler.
  const Changing lock;
  open_everything();
  forget_hot();
  g.clock.store(nullptr, std::memory_order_release);
}

ORRERY_TIMED_PATH void program_calls() {
  g.inside.store(true, std::memory_order_relaxed);
  g.calls.store(g.calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

ORRERY_TIMED_PATH void program_goes_on() {
  if (g.clock.load(std::memory_order_relaxed) != nullptr) {
    g.steps = 0;
    if (g.hot_count.load(std::memory_order_relaxed) != 0 && on_program_thread()) {
      const Changing lock;
      if (lock.held()) close_hot();
    }
  }
  g.inside.store(false, std::memory_order_relaxed);
}

std::uint64_t waits() { return g.waits.load(std::memory_order_relaxed); }

#else

void start(VirtualClock*) {}
void watch(std::uint64_t, std::uint64_t) {}
void unwatch(std::uint64_t, std::uint64_t) {}
void open_all() {}
void stop() {}
ORRERY_TIMED_PATH void program_calls() {}
ORRERY_TIMED_PATH void program_goes_on() {}
std::uint64_t waits() { return 0; }

#endif

}  // namespace orrery::clock::page_watch
