// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// One PE of a job in which PE 1 is killed in the middle of something: `kill_worker <what> <seed>`.
// The others go on with it until they hear that PE 1 is gone, or, where nothing need tell them, for a while;
// then what they do among each other still works, and they leave. A timer ends a hang.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
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
constexpr int kMostPes = 16;

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
  dmapp_lock_desc_t lock[kMostPes];
  std::uint64_t words[kWords];
  std::int64_t counter;
  std::int64_t left;  // how many survivors have told this PE, at the end, that they are there
};

class Worker {
 public:
  explicit Worker(Shared* shared) : shared_(shared) {}

  void run(const std::string& what) {
    struct Activity {
      const char* name;
      void (Worker::*run)();
    };
    constexpr Activity kAll[] = {
        {"put", &Worker::puts},
        {"get", &Worker::gets},
        {"named", &Worker::named},
        {"put_flag", &Worker::put_flags},
        {"strided", &Worker::strided},
        {"indexed", &Worker::indexed},
        {"pe_lists", &Worker::pe_lists},
        {"amo", &Worker::amos},
        {"amo_nbi", &Worker::amos_nbi},
        {"amo_general", &Worker::amos_general},
        {"lock", &Worker::free_locks},
        {"lock_try", &Worker::lock_tries},
        {"lock_holder", &Worker::lost_locks},
        {"lock_host", &Worker::locks_of_victim},
        {"lock_late", &Worker::late_grant},
        {"queue", &Worker::messages},
        {"queue_async", &Worker::messages},
        {"queue_fill", &Worker::half_a_message},
        {"barrier", &Worker::barriers},
        {"reduce", &Worker::reductions},
        {"tested", &Worker::tested_reductions},
        {"export", &Worker::exports},
    };
    for (const Activity& one : kAll) {
      if (what == one.name) return (this->*one.run)();
    }
    give_up("no such activity");
  }

  // The survivors meet by AMOs. One may leave as soon as it has heard of all others, so that the last AMOs to
  // it may fail.
  void meet() {
    for (int pe = 0; pe < g_job.npes; ++pe) {
      if (pe == kVictim) continue;
      const dmapp_return_t added = dmapp_aadd_qw(&shared_->left, &g_job.sheap_seg, pe, 1);
      if (added != DMAPP_RC_TRANSACTION_ERROR) require(added, "the last AMO");
    }
    const double begin = now();
    std::int64_t seen = 0;
    while (seen < g_job.npes - 1) {
      require(dmapp_afadd_qw(&seen, &shared_->left, &g_job.sheap_seg, g_job.pe, 0), "the last look");
      if (now() - begin > kPatience) give_up("the other survivors do not come");
      sched_yield();
    }
  }

 private:
  void transfers(bool put) {
    static std::uint64_t local[kWords];
    std::uint64_t n = 0;
    until_gone(false, [&] {
      const std::uint64_t count = ++n % 7 == 0 ? kWords : 8;
      const int to = static_cast<int>(n % static_cast<std::uint64_t>(g_job.npes));
      const dmapp_return_t posted =
          put ? dmapp_put_nbi(shared_->words, &g_job.sheap_seg, to, local, count, DMAPP_QW)
              : dmapp_get_nbi(local, shared_->words, &g_job.sheap_seg, to, count, DMAPP_QW);
      if (posted != DMAPP_RC_SUCCESS || n % 16 != 0) return posted;
      return dmapp_gsync_wait();
    });
  }
  void puts() { transfers(true); }
  void gets() { transfers(false); }
  // Non-blocking ones with a handle each, waited for and tested in turns.
  void named() {
    static std::uint64_t local[kWords];
    std::uint64_t n = 0;
    until_gone(false, [&] {
      const int to = static_cast<int>(++n % static_cast<std::uint64_t>(g_job.npes));
      dmapp_syncid_handle_t ids[2];
      dmapp_return_t rc =
          dmapp_put_nb(shared_->words, &g_job.sheap_seg, to, local, kWords, DMAPP_QW, &ids[0]);
      if (rc != DMAPP_RC_SUCCESS) return rc;
      rc = dmapp_get_nb(local, shared_->words, &g_job.sheap_seg, to, kWords, DMAPP_QW, &ids[1]);
      const dmapp_return_t put = dmapp_syncid_wait(&ids[0]);
      if (rc != DMAPP_RC_SUCCESS) return rc;
      for (int done = 0; done == 0 && rc == DMAPP_RC_SUCCESS;) rc = dmapp_syncid_test(&ids[1], &done);
      return put != DMAPP_RC_SUCCESS ? put : rc;
    });
  }
  void put_flags() {
    static std::uint64_t local[8];
    std::uint64_t n = 0;
    until_gone(false, [&] {
      const int to = static_cast<int>(++n % static_cast<std::uint64_t>(g_job.npes));
      return dmapp_put_flag(shared_->words, &g_job.sheap_seg, to, local, 8, DMAPP_QW, &shared_->words[9], n);
    });
  }
  void strided() {
    static std::uint64_t local[kWords];
    std::uint64_t n = 0;
    until_gone(false, [&] {
      const int to = static_cast<int>(++n % static_cast<std::uint64_t>(g_job.npes));
      const dmapp_return_t put = dmapp_iput(shared_->words, &g_job.sheap_seg, to, local, 3, 2, 500, DMAPP_QW);
      return put != DMAPP_RC_SUCCESS
                 ? put
                 : dmapp_iget(local, shared_->words, &g_job.sheap_seg, to, 2, 5, 500, DMAPP_DW);
    });
  }
  void indexed() {
    static std::uint64_t local[64];
    static std::ptrdiff_t index[64];
    for (std::ptrdiff_t i = 0; i < 64; ++i) index[i] = (i * 37) % 64;
    std::uint64_t n = 0;
    until_gone(false, [&] {
      const int to = static_cast<int>(++n % static_cast<std::uint64_t>(g_job.npes));
      const dmapp_return_t put =
          dmapp_ixput(shared_->words, &g_job.sheap_seg, to, local, index, 64, DMAPP_QW);
      return put != DMAPP_RC_SUCCESS
                 ? put
                 : dmapp_ixget(local, shared_->words, &g_job.sheap_seg, to, index, 64, DMAPP_QW);
    });
  }
  void pe_lists() {
    static std::uint64_t local[8 * kMostPes];
    dmapp_pe_t all[kMostPes];
    for (int pe = 0; pe < g_job.npes; ++pe) all[pe] = pe;
    const auto count = static_cast<std::uint32_t>(g_job.npes);
    std::uint64_t n = 0;
    until_gone(false, [&] {
      switch (++n % 3) {
        case 0:
          return dmapp_put_ixpe(shared_->words, &g_job.sheap_seg, all, count, local, 8, DMAPP_QW);
        case 1:
          return dmapp_scatter_ixpe(shared_->words, &g_job.sheap_seg, all, count, local, 8, DMAPP_QW);
        default:
          return dmapp_gather_ixpe(local, shared_->words, &g_job.sheap_seg, all, count, 8, DMAPP_QW);
      }
    });
  }
  void amos_nbi() {
    static std::int64_t found[8];
    int n = 0;
    until_gone(false, [&] {
      const int to = ++n % g_job.npes;
      dmapp_return_t rc = dmapp_axor_qw_nbi(&shared_->counter, &g_job.sheap_seg, to, 5);
      if (rc == DMAPP_RC_SUCCESS)
        rc = dmapp_acswap_qw_nbi(&found[n % 8], &shared_->counter, &g_job.sheap_seg, to, 0, n);
      return rc == DMAPP_RC_SUCCESS && n % 8 == 0 ? dmapp_gsync_wait() : rc;
    });
  }
  void amos_general() {
    double found = 0;
    int n = 0;
    until_gone(false, [&] {
      dmapp_amo_t add{DMAPP_AMO_FPADD, DMAPP_QW, 0x3ff0000000000000, 0};
      const dmapp_return_t rc =
          dmapp_amo_get(&found, &shared_->counter, &g_job.sheap_seg, ++n % g_job.npes, &add);
      return rc == DMAPP_RC_SUCCESS ? dmapp_amo_flush(n % g_job.npes, 0) : rc;
    });
  }
  void amos() {
    std::int64_t found = 0;
    int n = 0;
    until_gone(false, [&] {
      return dmapp_afadd_qw(&found, &shared_->counter, &g_job.sheap_seg, ++n % g_job.npes, 1);
    });
  }
  void free_locks() { locks(0, false); }
  void lost_locks() { locks(0, true); }
  void locks_of_victim() { locks(kVictim, false); }
  // The victim dies with or without the lock: a PE that tries again and again may take it or not, and does
  // not wait in any call.
  void lock_tries() {
    until_gone(false, [&] {
      dmapp_lock_handle_t held = 0;
      const dmapp_return_t taken = dmapp_lock_try(&shared_->lock[0], &g_job.sheap_seg, 0, 0, &held);
      if (taken == DMAPP_RC_BUSY) return DMAPP_RC_SUCCESS;
      return taken == DMAPP_RC_SUCCESS ? dmapp_lock_release(held, 0) : taken;
    });
  }
  std::uint64_t word_of(const void* there) {
    std::uint64_t word = 0;
    require(dmapp_get(&word, const_cast<void*>(there), &g_job.sheap_seg, 0, 1, DMAPP_QW), "dmapp_get");
    return word;
  }
  void say(std::uint64_t* there, std::uint64_t word) {
    require(dmapp_put(there, &g_job.sheap_seg, 0, &word, 1, DMAPP_QW), "dmapp_put");
  }
  std::uint64_t await_other(const void* there, std::uint64_t word) {
    for (;;) {
      if (const std::uint64_t now = word_of(there); now != word) return now;
      sched_yield();
    }
  }
  // Lock 0 goes from PE 0 to PE 2, PE 1, PE 3, and is lost with PE 1. PE 0 does not know that yet when PE 2
  // already awaits lock 1, which PE 3 has: what PE 0 then writes to PE 2 grants it nothing.
  void late_grant() {
    enum Word { kOfPe0, kOfPe2, kOfPe3, kReleased, kFree };
    std::uint64_t* const words = shared_->words;
    const auto acquire = [&](int lock, dmapp_lock_handle_t* held) {
      return dmapp_lock_acquire(&shared_->lock[lock], &g_job.sheap_seg, 0, 0, held);
    };
    dmapp_lock_handle_t held = 0;
    PMI_Barrier();
    alarm_after(static_cast<std::int64_t>(kPatience * 1e6), hang);
    switch (g_job.pe) {
      case 0: {
        require(acquire(0, &held), "lock 0");
        say(&words[kOfPe0], word_of(&shared_->lock[0]));
        const std::uint64_t of_pe3 = await_other(&words[kOfPe3], 0);
        (void)await_other(&shared_->lock[1], of_pe3);
        const dmapp_return_t given = dmapp_lock_release(held, 0);
        if (given != DMAPP_RC_TRANSACTION_ERROR) require(given, "the release of a lost lock");
        return say(&words[kReleased], 1);
      }
      case 2:
        (void)await_other(&words[kOfPe0], 0);
        if (acquire(0, &held) != DMAPP_RC_TRANSACTION_ERROR) give_up("got a lock that is lost");
        require(acquire(1, &held), "lock 1");
        if (word_of(&words[kFree]) == 0) give_up("got a lock that another PE holds");
        return require(dmapp_lock_release(held, 0), "release of lock 1");
      case 3:
        require(acquire(1, &held), "lock 1");
        say(&words[kOfPe3], word_of(&shared_->lock[1]));
        (void)await_other(&shared_->lock[0], await_other(&words[kOfPe2], 0));
        {
          dmapp_lock_handle_t lost = 0;
          if (acquire(0, &lost) != DMAPP_RC_TRANSACTION_ERROR) give_up("got a lock that is lost");
        }
        (void)await_other(&words[kReleased], 0);
        usleep(100'000);
        say(&words[kFree], 1);
        return require(dmapp_lock_release(held, 0), "release of lock 1");
      default:
        say(&words[kOfPe2], await_other(&shared_->lock[0], await_other(&words[kOfPe0], 0)));
        alarm_after(300'000, die);
        (void)acquire(0, &held);
    }
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
  // The victim alone sends, and fills a slot when it dies, perhaps: the others have never spoken to it.
  void half_a_message() {
    static std::uint64_t words[DMAPP_QUEUE_MAX_NELEMS - 1];
    dmapp_queue_handle_t queue = 0;
    require(dmapp_queue_attach(received, nullptr, 0, &queue), "dmapp_queue_attach");
    until_gone(false, [&] {
      dmapp_progress();
      return g_job.pe != kVictim ? DMAPP_RC_SUCCESS
                                 : dmapp_queue_put(queue, words, std::size(words), DMAPP_QW, 0, 0);
    });
    require(dmapp_queue_detach(queue, 0), "dmapp_queue_detach");
  }
  dmapp_c_pset_handle_t make_set() {
    dmapp_c_pset_desc_t all{};
    all.type = DMAPP_C_PSET_DELIMITER_STRIDED;
    all.u.stride_type = {.n_pes = g_job.npes, .base_pe = 0, .stride_pe = 1};
    dmapp_c_pset_handle_t set = 0;
    require(dmapp_c_pset_create(&all, 1, 0, nullptr, &set), "dmapp_c_pset_create");
    PMI_Barrier();
    return set;
  }
  void barriers() { collectives(false, false); }
  void reductions() { collectives(true, false); }
  void tested_reductions() { collectives(true, true); }
  void collectives(bool reduce, bool tests) {
    dmapp_c_pset_handle_t set = make_set();
    require(dmapp_c_pset_export(set), "dmapp_c_pset_export");
    std::int64_t in = 1, out = 0;
    until_gone(true, [&] {
      dmapp_return_t rc = reduce ? dmapp_c_greduce_start(set, &in, &out, 1, DMAPP_C_INT64, DMAPP_C_SUM)
                                 : dmapp_c_barrier_join(set);
      if (rc != DMAPP_RC_SUCCESS) return rc;
      if (!tests) return dmapp_c_pset_wait(set);
      while ((rc = dmapp_c_pset_test(set)) == DMAPP_RC_NOT_DONE) {
      }
      return rc;
    });
  }
  // Sets that are made and exported while the victim dies.
  void exports() {
    std::uint64_t name = 2;
    until_gone(true, [&] {
      dmapp_c_pset_desc_t all{};
      all.type = DMAPP_C_PSET_DELIMITER_STRIDED;
      all.u.stride_type = {.n_pes = g_job.npes, .base_pe = 0, .stride_pe = 1};
      dmapp_c_pset_handle_t set = 0;
      require(dmapp_c_pset_create(&all, name++, 0, nullptr, &set), "dmapp_c_pset_create");
      dmapp_return_t rc = DMAPP_RC_NOT_FOUND;
      while (rc == DMAPP_RC_NOT_FOUND) rc = dmapp_c_pset_export(set);  // the others' are not there yet
      if (rc == DMAPP_RC_SUCCESS) rc = dmapp_c_barrier_join(set);
      if (rc == DMAPP_RC_SUCCESS) rc = dmapp_c_pset_wait(set);
      const dmapp_return_t ended = dmapp_c_pset_destroy(set);
      return rc == DMAPP_RC_SUCCESS ? ended : rc;
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
  dmapp_rma_attrs_ext_t attributes{};
  require(dmapp_get_rma_attrs_ext(&attributes), "dmapp_get_rma_attrs_ext");
  if (g_what == "queue_async") attributes.queue_flags = DMAPP_QUEUE_ASYNC_PROGRESS;
  if (g_what == "queue_fill") attributes.queue_nelems = DMAPP_QUEUE_MAX_NELEMS;
  require(dmapp_init_ext(&attributes, &attributes), "dmapp_init_ext");
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
