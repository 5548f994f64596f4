// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// One PE of a job of three in which PE 1 is killed in the middle of something: `kill_worker <what> <seed>`.
// The others go on with it until they hear that PE 1 is gone, or, where nothing need tell them, for a while;
// then what they do among each other still works, and they leave. A timer ends a hang.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include <dmapp.h>
#include <pmi.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr int kVictim = 1;
constexpr double kPatience = 20;   // seconds until what must end is called a hang
constexpr double kLongEnough = 1;  // that puts go on to memory that nothing need miss
constexpr std::uint64_t kWords = 4096;

dmapp_jobinfo_t g_job;
std::string g_what;
std::int64_t g_dies_after = 0;  // microseconds

[[noreturn]] void give_up(const char* what, int code = 0) {
  const char* text = "";
  dmapp_explain_error(static_cast<dmapp_return_t>(code), &text);
  std::fprintf(stderr, "PE %d: %s: %s (%s)\n", g_job.pe, g_what.c_str(), what, text);
  _exit(1);
}
void require(dmapp_return_t rc, const char* call) {
  if (rc != DMAPP_RC_SUCCESS) give_up(call, rc);
}

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void die(int) { kill(getpid(), SIGKILL); }
void hang(int) {
  constexpr char kText[] = "a survivor hangs\n";
  [[maybe_unused]] const auto told = write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(2);
}

void alarm_after(std::int64_t us, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval timer{{0, 0}, {us / 1'000'000, us % 1'000'000}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// Does `step` until it says that PE 1 is gone; `must_tell`: it has to.
template <typename Step>
void until_gone(bool must_tell, Step step) {
  PMI_Barrier();
  if (g_job.pe != kVictim) {
    alarm_after(static_cast<std::int64_t>(kPatience * 1e6), hang);
  } else if (g_what != "lock_holder") {
    alarm_after(g_dies_after, die);
  }
  const double begin = now();
  for (;;) {
    const dmapp_return_t rc = step();
    if (rc == DMAPP_RC_TRANSACTION_ERROR) return;
    if (rc != DMAPP_RC_SUCCESS) give_up("another error than TRANSACTION_ERROR", rc);
    if (g_job.pe != kVictim && !must_tell && now() - begin > kLongEnough) return;
  }
}

int received(void*, void*, std::uint32_t, dmapp_pe_t) { return 0; }

struct Shared {
  dmapp_lock_desc_t lock[3];
  std::uint64_t words[kWords];
  std::int64_t counter;
  std::int64_t left[3];  // what the survivors tell each other at the end
};

class Worker {
 public:
  explicit Worker(Shared* shared) : shared_(shared) {}

  void run(const std::string& what) {
    if (what == "put" || what == "get") return transfers(what == "put");
    if (what == "amo") return amos();
    if (what == "lock_holder") return locks(0, true);
    if (what == "lock_host") return locks(kVictim, false);
    if (what == "lock") return locks(0, false);
    if (what == "queue") return messages();
    if (what == "barrier" || what == "reduce") return collectives(what == "reduce");
    give_up("no such activity");
  }

  // The survivors meet by AMOs. The other one may leave as soon as it has ours, and take the answer along:
  // then it has left its own here before.
  void meet() {
    const int other = 2 - g_job.pe;
    const dmapp_return_t added = dmapp_aadd_qw(&shared_->left[g_job.pe], &g_job.sheap_seg, other, 1);
    if (added != DMAPP_RC_TRANSACTION_ERROR) require(added, "the last AMO");
    const double begin = now();
    std::int64_t seen = 0;
    while (seen == 0) {
      require(dmapp_afadd_qw(&seen, &shared_->left[other], &g_job.sheap_seg, g_job.pe, 0), "the last look");
      if (now() - begin > kPatience) give_up("the other survivor does not come");
      sched_yield();
    }
  }

 private:
  void transfers(bool put) {
    static std::uint64_t local[kWords];
    std::uint64_t n = 0;
    until_gone(false, [&] {
      const std::uint64_t count = ++n % 7 == 0 ? kWords : 8;
      const int to = static_cast<int>(n % 3);
      const dmapp_return_t posted =
          put ? dmapp_put_nbi(shared_->words, &g_job.sheap_seg, to, local, count, DMAPP_QW)
              : dmapp_get_nbi(local, shared_->words, &g_job.sheap_seg, to, count, DMAPP_QW);
      if (posted != DMAPP_RC_SUCCESS || n % 16 != 0) return posted;
      return dmapp_gsync_wait();
    });
  }
  void amos() {
    std::int64_t found = 0;
    int n = 0;
    until_gone(false,
               [&] { return dmapp_afadd_qw(&found, &shared_->counter, &g_job.sheap_seg, ++n % 3, 1); });
  }
  void locks(int host, bool dies_with_it) {
    until_gone(true, [&] {
      dmapp_lock_handle_t held = 0;
      const dmapp_return_t taken = dmapp_lock_acquire(&shared_->lock[host], &g_job.sheap_seg, host, 0, &held);
      if (taken != DMAPP_RC_SUCCESS) return taken;
      if (dies_with_it && g_job.pe == kVictim && ++taken_ > 20) kill(getpid(), SIGKILL);
      const dmapp_return_t given = dmapp_lock_release(held, 0);
      // A free lock whose last holder died after it gave it back is as good as before.
      if (g_job.pe != kVictim && !dies_with_it && host != kVictim && now() > end_)
        return DMAPP_RC_TRANSACTION_ERROR;
      return given;
    });
  }
  void messages() {
    dmapp_queue_handle_t queue = 0;
    require(dmapp_queue_attach(received, nullptr, 0, &queue), "dmapp_queue_attach");
    std::uint64_t word = 1;
    until_gone(true, [&] {
      dmapp_progress();
      return dmapp_queue_put(queue, &word, 1, DMAPP_QW, g_job.pe == kVictim ? 0 : kVictim, 0);
    });
  }
  void collectives(bool reduce) {
    dmapp_c_pset_desc_t all{};
    all.type = DMAPP_C_PSET_DELIMITER_STRIDED;
    all.u.stride_type = {.n_pes = g_job.npes, .base_pe = 0, .stride_pe = 1};
    dmapp_c_pset_handle_t set = 0;
    require(dmapp_c_pset_create(&all, 1, 0, nullptr, &set), "dmapp_c_pset_create");
    PMI_Barrier();
    require(dmapp_c_pset_export(set), "dmapp_c_pset_export");
    std::int64_t in = 1, out = 0;
    until_gone(true, [&] {
      const dmapp_return_t begun = reduce
                                       ? dmapp_c_greduce_start(set, &in, &out, 1, DMAPP_C_INT64, DMAPP_C_SUM)
                                       : dmapp_c_barrier_join(set);
      return begun == DMAPP_RC_SUCCESS ? dmapp_c_pset_wait(set) : begun;
    });
  }

  Shared* shared_;
  int taken_ = 0;
  const double end_ = now() + kLongEnough;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  g_what = argv[1];
  dmapp_rma_attrs_t actual{};
  require(dmapp_init(nullptr, &actual), "dmapp_init");
  require(dmapp_get_jobinfo(&g_job), "dmapp_get_jobinfo");
  auto* const shared = static_cast<Shared*>(dmapp_sheap_malloc(sizeof(Shared)));
  std::memset(shared, 0, sizeof *shared);
  PMI_Barrier();
  std::mt19937_64 random(std::strtoull(argv[2], nullptr, 10));
  g_dies_after = std::uniform_int_distribution<std::int64_t>(1'000, 60'000)(random);
  Worker worker(shared);
  worker.run(g_what);
  if (g_job.pe == kVictim) give_up("the victim lives");
  worker.meet();
  // Without dmapp_finalize, which is collective: the launcher ends a job that waits for a PE that is gone.
  std::printf("PE %d went on\n", g_job.pe);
  std::fflush(stdout);
  _exit(0);
}
