// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/fork_child.hpp"

#include "emu/base/log.hpp"
#include "emu/memory/fault_handler.hpp"

#include <cerrno>
#include <mutex>
#include <new>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ORRERY_BARE __attribute__((no_sanitize("address", "thread", "undefined")))

namespace orrery::memory {

constinit bool g_has_fork_handlers = false;

namespace {

// Longest time the parent's forking thread waits for the child's snapshot. A GiB takes about a second; a
// child that was stopped must not stop the parent for ever.
constexpr int kSnapshotMilliseconds = 10'000;

// The table itself may change until the fork (interposed calls of other threads), and even during it, so the
// child gets a copy. The lock is a leaf: its holders never wait.
void copy_table(ProcessState& state) {
  const std::lock_guard lock(state.table);
  const auto extents = state.extents.all();
  for (std::size_t i = 0; i < extents.size(); ++i) state.fork_extents[i] = extents[i];
  state.fork_count = static_cast<std::uint32_t>(extents.size());
}

// The state that the calling thread's fork has locked: another thread may make an address space while it
// runs.
__attribute__((tls_model("initial-exec"))) thread_local constinit ProcessState* t_forking = nullptr;

void before_fork() {
  ProcessState* const state = current_state();
  t_forking = nullptr;
  if (state == nullptr || state->in_child()) return;
  t_forking = state;
  // A chunk in the middle of a switch would be read-only in the child.
  state->switching.lock();
  copy_table(*state);
  if (state->fork_count != 0) put_fault_handler_in_front();
  lock_fault_handler();
  if (state->fork_count == 0) return;
  sigset_t only, before;
  sigemptyset(&only);
  sigaddset(&only, SIGSEGV);
  // The child may fault inside fork itself; a blocked SIGSEGV would kill it.
  pthread_sigmask(SIG_UNBLOCK, &only, &before);
  state->fork_signal_was_blocked = sigismember(&before, SIGSEGV) == 1;
  if (pipe2(state->fork_pipe, O_CLOEXEC) != 0) state->fork_pipe[0] = state->fork_pipe[1] = -1;
}

void block_again(const ProcessState& state) {
  if (!state.fork_signal_was_blocked) return;
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGSEGV);
  pthread_sigmask(SIG_BLOCK, &only, nullptr);
}

void after_fork_in_parent() {
  ProcessState* const state = t_forking;
  if (state == nullptr) return;
  if (state->fork_count != 0) {
    if (state->fork_pipe[0] >= 0) {
      close(state->fork_pipe[1]);
      // Readable or hung up: the child has copied, or is dead, or there is none.
      pollfd wait{.fd = state->fork_pipe[0], .events = POLLIN, .revents = 0};
      int ready = 0;
      const std::int64_t deadline = monotonic_ns() + std::int64_t{kSnapshotMilliseconds} * 1'000'000;
      do {
        const std::int64_t left = (deadline - monotonic_ns()) / 1'000'000;
        ready = poll(&wait, 1, left > 0 ? static_cast<int>(left) : 0);
      } while (ready < 0 && errno == EINTR);
      close(state->fork_pipe[0]);
      if (ready == 0)
        log::warn("a forked child did not copy the adopted memory within {} ms", kSnapshotMilliseconds);
    }
    block_again(*state);
  }
  state->fork_pipe[0] = state->fork_pipe[1] = -1;
  unlock_fault_handler();
  state->switching.unlock();
}

ORRERY_BARE long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  return g_handler_page.system_call(number, a, b, c, d, e, f);
}

// Private memory over `range`, filled from the file where the file has data.
ORRERY_BARE void map_copy(ProcessState& state, Range range, int protection) {
  const int file = state.file;
  const long at = call(SYS_mmap, static_cast<long>(range.begin), static_cast<long>(range.size()),
                       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (at != static_cast<long>(range.begin)) {
    state.child_lost += range.end - range.begin;
    return;
  }
  std::uint64_t from = range.begin;
  while (from < range.end) {
    const long data = call(SYS_lseek, file, static_cast<long>(from), SEEK_DATA);
    if (data < 0 || static_cast<std::uint64_t>(data) >= range.end) break;
    const long hole = call(SYS_lseek, file, data, SEEK_HOLE);
    if (hole < 0) break;
    std::uint64_t next = static_cast<std::uint64_t>(data) < from ? from : static_cast<std::uint64_t>(data);
    const std::uint64_t end =
        static_cast<std::uint64_t>(hole) < range.end ? static_cast<std::uint64_t>(hole) : range.end;
    while (next < end) {
      const long got = call(SYS_pread64, file, static_cast<long>(next), static_cast<long>(end - next),
                            static_cast<long>(next));
      if (got <= 0) return;
      next += static_cast<std::uint64_t>(got);
    }
    from = end;
  }
  if (protection != (PROT_READ | PROT_WRITE))
    call(SYS_mprotect, static_cast<long>(range.begin), static_cast<long>(range.size()), protection);
}

// A private view of the file: pages that the child does not touch follow the parent.
ORRERY_BARE void map_view(ProcessState& state, Range range, int protection) {
  const long at = call(SYS_mmap, static_cast<long>(range.begin), static_cast<long>(range.size()), protection,
                       MAP_PRIVATE | MAP_FIXED_NOREPLACE, state.file, static_cast<long>(range.begin));
  if (at != static_cast<long>(range.begin)) state.child_lost += range.end - range.begin;
}

void after_fork_in_child() {
  ProcessState* const state = t_forking;
  if (state == nullptr) return;
  state->child_closed = true;
  unlock_fault_handler();
  look_for_fault_handler_each_time();  // the thread that promised to call for looks is not here
  map_extents_in_child(*state);
  // The parent's, not ours: kept open they would hold its memory after its death.
  for (const int file : {state->file, state->userfault, state->pagemap, state->map_query.descriptor()})
    if (file >= 0) close(file);
  if (state->fork_pipe[0] >= 0) {
    close(state->fork_pipe[0]);
    close(state->fork_pipe[1]);  // the parent goes on
  }
  if (state->fork_count != 0) block_again(*state);
  if (state->child_lost != 0)
    log::error(
        "{} bytes of adopted memory are missing in this child: other memory was mapped there during fork",
        state->child_lost);
}

}  // namespace

// As early as the library is loaded: of the handlers that run in a child the first registered comes first,
// and one that maps memory could take the place of an extent.
__attribute__((constructor)) void register_fork_handlers() {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  if (g_has_fork_handlers) return;
  g_has_fork_handlers = true;
  pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);
}

ORRERY_BARE void map_extents_in_child(ProcessState& state) {
  if (state.child_mapped.load(std::memory_order_relaxed)) return;
  state.child_mapped.store(true, std::memory_order_relaxed);
  const ForkMode mode = state.fork_mode.load(std::memory_order_relaxed);
  const Extent* const extents = state.fork_extents.data();
  for (std::uint32_t i = 0; mode != ForkMode::no_copy && i < state.fork_count; ++i) {
    const Range range = extents[i].range;
    const int protection = extents[i].protection;
    if (mode == ForkMode::full_copy || !extents[i].bulk || range.end - range.begin <= 2 * kPageBytes) {
      map_copy(state, range, protection);
    } else {
      map_copy(state, {range.begin, range.begin + kPageBytes}, protection);
      map_view(state, {range.begin + kPageBytes, range.end - kPageBytes}, protection);
      map_copy(state, {range.end - kPageBytes, range.end}, protection);
    }
  }
}

ORRERY_BARE bool child_has(const ProcessState& state, std::uint64_t address) {
  if (state.fork_mode.load(std::memory_order_relaxed) == ForkMode::no_copy) return false;
  const Extent* const extents = state.fork_extents.data();
  for (std::uint32_t i = 0; i < state.fork_count; ++i)
    if (address >= extents[i].range.begin && address < extents[i].range.end) return true;
  return false;
}

}  // namespace orrery::memory
