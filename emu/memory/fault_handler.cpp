// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/fault_handler.hpp"

#include "emu/memory/fork_child.hpp"
#include "emu/memory/guarded.hpp"
#include "emu/memory/process_state.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

// In a forked child the pages that hold the program's data, its linkage table too, may be missing until
// map_extents_in_child has run. So everything here up to chaining uses the stack, HandlerPage, ProcessState
// and thread-local storage only, calls the system through a pointer in HandlerPage, and is not instrumented
// by sanitizers.
#define ORRERY_BARE __attribute__((no_sanitize("address", "thread", "undefined")))

namespace orrery::memory {

namespace {

struct ThreadFaults {
  // The last fault that was tried again because a switch may have caused it.
  std::uint64_t address;
  std::uint32_t sequence;
  bool tried;
  // The call of ours that is chaining at this moment: a handler that saved ours as its predecessor calls it
  // back.
  const siginfo_t* chaining;
  const void* chaining_frame;
};
// initial-exec: no call, and no allocation, to reach it from a signal handler.
__attribute__((tls_model("initial-exec"))) thread_local constinit ThreadFaults t_faults{};

std::mutex g_installing;
std::atomic<FaultHook> g_hook{nullptr};

enum class Look : std::uint8_t {
  each_time,
  once,  // a caller promised to call for the next one
  none,  // it was done
};
std::atomic<Look> g_look{Look::each_time};

ORRERY_BARE bool wait_for_switch(ProcessState& state, std::uint64_t address) {
  bool waited = false;
  for (;;) {
    const std::uint32_t sequence = state.sequence.load(std::memory_order_acquire);
    if (sequence == 0) return false;
    const bool active = (sequence & 1) != 0 &&
                        address >= state.active_begin.load(std::memory_order_relaxed) &&
                        address < state.active_end.load(std::memory_order_relaxed);
    if (!active) {
      // The switch may have ended between the fault and here: try the access again, once per switch. A real
      // fault comes back with the same sequence and goes on to the program's handler.
      if (!waited && t_faults.tried && t_faults.address == address && t_faults.sequence == sequence)
        return false;
      t_faults.tried = true;
      t_faults.address = address;
      t_faults.sequence = sequence;
      state.faults_waited.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    waited = true;
    // The program may be between a call of its own that failed and its look at why.
    int& error = *g_handler_page.errno_location();
    const int saved = error;
    g_handler_page.system_call(SYS_futex, &state.sequence, FUTEX_WAIT, sequence, nullptr, nullptr, 0);
    error = saved;
  }
}

// The default action, with the fault's own address: the access is repeated, or the sent signal sent again,
// with the default handler in place.
void die_of(int number, const siginfo_t* info) {
  struct sigaction fallback {};
  fallback.sa_handler = SIG_DFL;
  sigaction(number, &fallback, nullptr);
  if (info->si_code <= 0)
    syscall(SYS_rt_tgsigqueueinfo, getpid(), static_cast<pid_t>(syscall(SYS_gettid)), number, info);
}

// Leaves a guarded run of ours that met a missing page. Returns when the thread is in none.
void leave_guarded_run() {
  sigjmp_buf* const exit = guarded_exit();
  if (exit == nullptr) return;
  siglongjmp(*exit, 1);
}

void hand_on(HandlerChain& chain, int number, siginfo_t* info, void* context) {
  const void* const frame = __builtin_frame_address(0);
  struct sigaction& target = chain.target();
  // Called back by the handler we chained to (deeper on the stack, with the same siginfo): the chain is a
  // ring, we are its end.
  const bool ring = t_faults.chaining == info && frame < t_faults.chaining_frame;
  const bool no_handler = target.sa_handler == SIG_DFL || target.sa_handler == SIG_IGN;
  if (target.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (ring || no_handler) {
    die_of(number, info);
    return;
  }
  t_faults.chaining = info;
  t_faults.chaining_frame = frame;
  // As the kernel would have blocked for it; our return gives the thread its own mask back.
  if ((target.sa_flags & SA_NODEFER) == 0) {
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_sigmask(SIG_BLOCK, &only, nullptr);
  }
  pthread_sigmask(SIG_BLOCK, &target.sa_mask, nullptr);
  const struct sigaction chosen = target;
  if ((chosen.sa_flags & SA_RESETHAND) != 0) target.sa_handler = SIG_DFL;
  if ((chosen.sa_flags & SA_SIGINFO) != 0)
    chosen.sa_sigaction(number, info, context);
  else
    chosen.sa_handler(number);
  t_faults.chaining = nullptr;
}

ORRERY_BARE void on_fault(int number, siginfo_t* info, void* context) {
  ProcessState* const state = g_handler_page.state.load(std::memory_order_acquire);
  if (state != nullptr && info->si_code > 0) {
    const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
    if (state->in_child()) {
      if (!state->child_mapped.load(std::memory_order_relaxed)) {
        map_extents_in_child(*state);
        if (child_has(*state, address)) return;
      }
    } else {
      const FaultHook hook = g_hook.load(std::memory_order_acquire);
      if (hook != nullptr && hook(info, context)) return;
      if (info->si_code == SEGV_ACCERR && wait_for_switch(*state, address)) return;
    }
  }
  if (info->si_code > 0) leave_guarded_run();
  hand_on(g_handler_page.segment_faults, number, info, context);
}

// A page of a mapping that nothing is behind any more: its file was cut short, or the huge page that it needs
// is not there.
ORRERY_BARE void on_bus_error(int number, siginfo_t* info, void* context) {
  if (info->si_code > 0) leave_guarded_run();
  hand_on(g_handler_page.bus_faults, number, info, context);
}

using Handler = void (*)(int, siginfo_t*, void*);

bool is_in_front(const struct sigaction& now, Handler handler) {
  return (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handler;
}

void put_in_front(int number, Handler handler, HandlerChain& chain) {
  struct sigaction now {};
  sigaction(number, nullptr, &now);
  if (is_in_front(now, handler)) return;
  struct sigaction ours {};
  ours.sa_sigaction = handler;
  // Not blocked while it runs: a thread that waits here must not pass for one that blocks SIGSEGV
  // (all_threads_take_faults).
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  const std::uint32_t next = chain.last.load(std::memory_order_relaxed) + 1;
  chain.slots[next % chain.slots.size()] = now;
  // Release: the slot is whole before a handler can pick it.
  chain.last.store(next, std::memory_order_release);
  sigaction(number, &ours, nullptr);
}

void withdraw(int number, Handler handler, HandlerChain& chain) {
  struct sigaction now {};
  sigaction(number, nullptr, &now);
  if (is_in_front(now, handler)) sigaction(number, &chain.target(), nullptr);
}

}  // namespace

void set_fault_hook(FaultHook hook) { g_hook.store(hook, std::memory_order_release); }

void put_fault_handler_in_front() {
  const std::lock_guard lock(g_installing);
  g_handler_page.system_call = &::syscall;
  g_handler_page.errno_location = &__errno_location;
  put_in_front(SIGSEGV, &on_fault, g_handler_page.segment_faults);
  put_in_front(SIGBUS, &on_bus_error, g_handler_page.bus_faults);
}

void keep_fault_handler_in_front() {
  if (g_look.load(std::memory_order_relaxed) == Look::none) return;
  // Before the look: a call that comes during it is for the next one.
  Look expected = Look::once;
  g_look.compare_exchange_strong(expected, Look::none, std::memory_order_relaxed);
  put_fault_handler_in_front();
}

void call_for_fault_handler_look() { g_look.store(Look::once, std::memory_order_relaxed); }

void renew_fault_handler_look() {
  Look expected = Look::none;
  g_look.compare_exchange_strong(expected, Look::once, std::memory_order_relaxed);
}

void look_for_fault_handler_each_time() { g_look.store(Look::each_time, std::memory_order_relaxed); }

void lock_fault_handler() { g_installing.lock(); }

void unlock_fault_handler() { g_installing.unlock(); }

void withdraw_fault_handler() {
  look_for_fault_handler_each_time();
  withdraw(SIGSEGV, &on_fault, g_handler_page.segment_faults);
  withdraw(SIGBUS, &on_bus_error, g_handler_page.bus_faults);
}

}  // namespace orrery::memory
