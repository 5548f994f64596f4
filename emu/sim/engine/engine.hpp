// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The event engine: runs a router model over partitions, in parallel, bit for bit the same whatever the
// number of threads and partitions.
//
// How that holds. Time is integer. A tick has two phases: first every event of the tick is applied (a
// header arrives, a transfer ends, a credit returns), then every node that was touched arbitrates once,
// on its own state. Events of one tick at one node commute, because each touches a field of its own or
// adds to a count; arbitration reads and writes its own node only and its effects elsewhere lie in the
// future. So no order among events matters, and random numbers come from the node's own stream. Parallel
// execution is conservative: a window is as long as the shortest time in which anything crosses between
// partitions (YAWNS: Nicol, Micheal, Inouye 1989), with one barrier a window.
//
// A router is a class with these members (see bgl_router.hpp; all inlined into the loop):
//   static constexpr int kHorizonLog2;              ticks that the calendar keeps in buckets
//   Node sites() const;                             what events are addressed to: nodes or routers
//   Node partition_grain() const;                   partitions are multiples of this many sites
//   Tick min_cross_delay() const;                   >= 1
//   void start(Partition&, Node);                   before the first tick
//   void apply(Partition&, const Event&, Tick);     phase one
//   void arbitrate(Partition&, Node, Tick);         phase two
//   void look(std::vector<VcUse>*) const;           adds how full each VC's buffers are, all threads waiting
//   void prefetch(const Partition&, const Event&) const;          what apply() reads first, some events early
//   void prefetch_packets(const Partition&, const Event&) const;  may be left out: what that leads to
#pragma once

#include "emu/base/check.hpp"
#include "emu/sim/engine/partition.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <sched.h>

namespace orrery::sim {

inline constexpr std::size_t kMostSamples = 65536;  // even

// How long to run and what to watch.
struct RunLimits {
  Tick until = kNever;        // stop here at the latest
  Tick warmup = 0;            // latencies count from here on
  Tick sample_every = 10000;  // interval of the throughput curve and of the steady-state test
  Tick stall_after = 0;       // packets wait and nothing moves for so long, and for 100 intervals: a deadlock
  bool until_steady = false;  // stop `measure` ticks after deliveries kept pace with link transfers
  Tick measure = 0;
  double steady_within = 0.02;  // |delivered hops / link hops - 1| over an interval
  int steady_intervals = 3;     // ... this many times in a row
  bool keep_samples = true;
  std::size_t most_samples = kMostSamples;  // then every two intervals become one, and new ones are as long
  unsigned looks = 0;  // at the buffers, evenly in an interval: how full they are goes into its sample
  unsigned threads = 1;
  unsigned partitions = 0;  // 0: as many as threads
  const std::atomic<bool>* interrupt = nullptr;
  // Called between windows about every sample interval, from one thread.
  std::function<void(Tick now, const Counters&)> progress;
};

struct RunOutcome {
  Stop stop = Stop::finished;
  Tick end = 0;            // when it ended; of a finished run the last delivery
  Tick measured_from = 0;  // start of the measured interval
  bool steady = false;     // the steady-state test was met over the measured interval
  Counters at_measure;     // totals at measured_from
  Counters total;
  LatencyHistogram latency;                        // of all measured packets
  LatencyHistogram urgent;                         // of those with priority
  std::shared_ptr<const LatencyHistogram> others;  // ... and without, where there are some with
  std::uint64_t in_flight = 0;                     // counted in the pools, not derived
  bool conserved = false;  // all that was sent (responses too) == received + dropped + in flight
  std::vector<Sample> samples;
  std::size_t engine_bytes = 0;  // all that the partitions hold
};

template <typename Router>
class Engine {
 public:
  // `router` and `workload` must outlive the engine. REQUIRES: limits.threads >= 1, limits.most_samples even,
  // not 0.
  Engine(Router& router, Workload& workload, const RunLimits& limits) : router_(router), limits_(limits) {
    const Node sites = router.sites();
    ORRERY_CHECK(sites <= Event::kMaxNodes, "{} sites: events name {}", sites, Event::kMaxNodes);
    const Node grain = router.partition_grain();
    const Node grains = sites / grain;
    unsigned want = limits.partitions ? limits.partitions : limits.threads;
    if (want > grains) want = grains;
    threads_ = limits.threads < want ? limits.threads : want;
    home_.resize(grains);
    for (unsigned p = 0; p < want; ++p) {
      const auto first = static_cast<Node>(std::uint64_t{grains} * p / want);
      const auto last = static_cast<Node>(std::uint64_t{grains} * (p + 1) / want);
      parts_.push_back(
          std::make_unique<Partition>(first * grain, (last - first) * grain, Router::kHorizonLog2));
      for (Node g = first; g < last; ++g) home_[g] = static_cast<std::uint16_t>(p);
    }
    for (auto& part : parts_) {
      part->workload_ = &workload;
      part->partly_ = workload.has_background();
      part->home_ = &home_;
      part->grain_ = grain;
      part->measure_from_ = limits.until_steady ? kNever : limits.warmup;
      for (auto& box : part->mail_) box.resize(parts_.size());
    }
    window_ = parts_.size() == 1 ? kNever : router.min_cross_delay();
    sample_at_ = limits_.sample_every;
    look_again(0);
    if constexpr (kHasInterludes) interlude_at_ = router.first_interlude();
    outcome_.measured_from = limits.until_steady ? kNever : limits.warmup;
    measuring_ = outcome_.measured_from == 0;  // all of the run counts
  }

  // Simulates to the end that the limits name. Blocks; uses limits.threads threads. Call once.
  RunOutcome run() {
    for (auto& part : parts_)
      for (Node n = part->first(); n < part->first() + part->count(); ++n) router_.start(*part, n);
    for (auto& part : parts_) settle(*part, 0);
    plan();
    if (threads_ == 1) {
      while (!stop_) {
        for (auto& part : parts_) advance(*part);
        plan();
      }
    } else {
      std::vector<std::thread> crew;
      for (unsigned t = 1; t < threads_; ++t) crew.emplace_back([this, t] { work(t); });
      work(0);
      for (auto& thread : crew) thread.join();
    }
    finish();
    return std::move(outcome_);
  }

  const std::vector<std::unique_ptr<Partition>>& partitions() const { return parts_; }

 private:
  void work(unsigned thread) {
    while (!stop_) {
      for (std::size_t p = thread; p < parts_.size(); p += threads_) advance(*parts_[p]);
      arrive();
    }
  }

  // Phase two for the nodes marked at `now`.
  void settle(Partition& part, Tick now) {
    for (std::size_t i = 0; i < part.dirty_.size(); ++i) router_.arbitrate(part, part.dirty_[i], now);
    part.dirty_.clear();
  }

  // One window of one partition: its mail, then its events before end_.
  void advance(Partition& part) {
    const int read = parity_;
    const std::size_t self = part.home(part.first());
    for (auto& from : parts_) {
      auto& box = from->mail_[read][self];
      for (const auto& mail : box.signals) part.calendar_.push(mail.at, mail.event);
      for (auto& mail : box.transfers) {
        mail.event.packet = part.pool_.add(mail.packet);
        part.calendar_.push(mail.at, mail.event);
      }
      box.signals.clear();
      box.transfers.clear();
    }
    part.parity_ = read ^ 1;
    for (;;) {
      const Tick now = part.calendar_.next();
      if (now >= end_) break;
      part.calendar_.take(
          now,
          [&](const Event event) {
            ++part.counters_.events;
            router_.apply(part, event, now);
          },
          [&](const Event& event) { router_.prefetch(part, event); },
          [&](const Event& event) {
            if constexpr (kPrefetchesPackets) router_.prefetch_packets(part, event);
          });
      settle(part, now);
    }
  }

  // Barrier; the last to arrive plans the next window.
  void arrive() {
    const std::uint64_t round = round_.load(std::memory_order_acquire);
    if (waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      waiting_.store(0, std::memory_order_relaxed);
      plan();
      // Releases the plan, and by the acquire-release chain above all that the others wrote.
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins)
      if (spins > kSpins) sched_yield();
  }

  // Decides the next window, or that the run is over. One thread, all others at the barrier.
  void plan() {
    parity_ ^= 1;  // what was written in the window that ended is now read
    for (auto& part : parts_)
      for (std::size_t to = 0; to < parts_.size(); ++to)
        part->mail_[parity_][to].leave_room_to(part->mail_[parity_ ^ 1][to]);
    Tick next = earliest();
    // All events before the next look, sample or interlude are done. A look at a sample's tick belongs to it.
    // Between two interludes nothing may be going on; before the first that is the end.
    while (!stop_ && (next != kNever || between_)) {
      const Tick due = std::min({look_at_, sample_at_, interlude_at_});
      if (next < due) break;
      if (look_at_ == due) {
        router_.look(&uses_);
        look_at_ += look_every_;
      } else if (sample_at_ == due) {
        boundary(due);
      } else {
        next = interlude(due, next);
      }
    }
    if (stop_) return;
    if (next == kNever) return halt(in_flight() == 0 ? Stop::finished : Stop::deadlock, last());
    if (next >= limits_.until) return halt(Stop::time_limit, limits_.until);
    end_ = window_ == kNever ? kNever : next + window_;
    end_ = std::min({end_, sample_at_, look_at_, interlude_at_, limits_.until});
  }

  // Tick of the next event.
  Tick earliest() const {
    Tick next = kNever;
    for (auto& part : parts_) {
      next = std::min(next, part->calendar_.next());
      for (const auto& box : part->mail_[parity_]) next = std::min(next, box.earliest());
    }
    return next;
  }

  // What the router does to the network as a whole at `at`; returns the tick of the next event, which was
  // `next` before.
  Tick interlude(Tick at, Tick next) {
    if constexpr (kHasInterludes) {
      interlude_at_ = router_.interlude(at, parts_, in_flight());
      const Tick now = earliest();
      // Nothing is going on and nothing was begun: waiting longer changes nothing.
      if (next == kNever && now == kNever) interlude_at_ = kNever;
      between_ = interlude_at_ != kNever;
      return now;
    }
    return next;
  }

  // Tick of the last delivery.
  Tick last() const {
    Tick latest = 0;
    for (auto& part : parts_) latest = std::max(latest, part->last_delivery_);
    return latest;
  }

  void halt(Stop why, Tick at) {
    outcome_.stop = why;
    outcome_.end = at;
    stop_ = true;
  }

  Counters totals() const {
    Counters sum;
    for (auto& part : parts_) sum.add(part->counters_);
    return sum;
  }
  std::uint64_t in_flight() const {
    std::uint64_t count = 0;
    for (auto& part : parts_) {
      count += part->pool_.live();
      for (const auto& box : part->mail_[parity_]) count += box.transfers.size();
    }
    return count;
  }

  // All events before `at` are done: sample, test for the steady state, for a stall, for an interrupt.
  void boundary(Tick at) {
    const Counters now = totals();
    const std::uint64_t flying = in_flight();
    const bool pace = in_pace(previous_, now);
    if (at > limits_.warmup) {
      paced_ = pace ? paced_ + 1 : 0;
    }
    if (outcome_.measured_from == kNever && paced_ >= limits_.steady_intervals) {
      outcome_.measured_from = at;
      for (auto& part : parts_) part->measure_from_ = at;
    }
    if (!measuring_ && outcome_.measured_from <= at) {
      measuring_ = true;
      outcome_.measured_from = at;
      outcome_.at_measure = now;
    }
    if (limits_.keep_samples) outcome_.samples.push_back({at, now, flying, std::move(uses_)});
    uses_.clear();
    if (outcome_.samples.size() >= limits_.most_samples) {
      join_pairs(&outcome_.samples);
      limits_.sample_every *= 2;
      look_again(at);
    }
    // Nothing moved in many intervals in a row while packets wait. Intervals alone do not say how long: they
    // may be shorter than what a packet takes.
    bool stuck = now.delivered == previous_.delivered && now.link_hops == previous_.link_hops && flying > 0;
    if constexpr (kHasInterludes) stuck = stuck && !router_.holds_requests(at);
    stalled_ = stuck ? stalled_ + 1 : 0;
    if (!stuck) moved_at_ = at;
    previous_ = now;
    sample_at_ += limits_.sample_every;
    if (limits_.progress) limits_.progress(at, now);
    if (limits_.interrupt && limits_.interrupt->load(std::memory_order_relaxed))
      return halt(Stop::interrupted, at);
    if (stalled_ >= kStalledIntervals && at - moved_at_ >= limits_.stall_after)
      return halt(Stop::deadlock, at);
    if (limits_.until_steady && measuring_ && at >= outcome_.measured_from + limits_.measure)
      return halt(Stop::steady, at);
  }

  // The looks of the intervals that begin at `from`.
  void look_again(Tick from) {
    look_every_ = limits_.looks == 0 ? 0 : std::max<Tick>(1, limits_.sample_every / limits_.looks);
    look_at_ = limits_.looks == 0 ? kNever : from + look_every_;
  }

  bool in_pace(const Counters& from, const Counters& to) const {
    const double links = static_cast<double>(to.link_hops - from.link_hops);
    const double paid = static_cast<double>(to.delivered_hops - from.delivered_hops);
    return links > 0 && paid >= links * (1 - limits_.steady_within) &&
           paid <= links * (1 + limits_.steady_within);
  }

  void finish() {
    outcome_.total = totals();
    outcome_.in_flight = in_flight();
    const Counters& t = outcome_.total;
    outcome_.conserved =
        t.injected + t.responses == t.delivered + t.responses_back + t.dropped + outcome_.in_flight;
    outcome_.steady = measuring_ && in_pace(outcome_.at_measure, outcome_.total);
    if (!measuring_) outcome_.measured_from = 0;
    for (auto& part : parts_) {
      outcome_.latency.add(part->latency_);
      if (part->urgent_latency_) outcome_.urgent.add(*part->urgent_latency_);
      outcome_.engine_bytes += part->bytes();
    }
    if (outcome_.urgent.count() != 0) {
      outcome_.others = std::make_shared<const LatencyHistogram>(outcome_.latency);
      outcome_.latency.add(outcome_.urgent);
    }
    outcome_.engine_bytes += home_.capacity() * sizeof(home_[0]);
  }

  static constexpr int kSpins = 2000;
  static constexpr int kStalledIntervals = 100;
  static constexpr bool kPrefetchesPackets =
      requires(const Router& router, const Partition& part, const Event& event) {
    router.prefetch_packets(part, event);
  };
  // Whether the router does anything to the network as a whole in a run (tile_router.hpp).
  static constexpr bool kHasInterludes = requires(Router & router) { router.first_interlude(); };

  Router& router_;
  RunLimits limits_;
  std::vector<std::unique_ptr<Partition>> parts_;
  std::vector<std::uint16_t> home_;  // of each grain of sites the partition
  unsigned threads_ = 1;
  Tick window_ = 0;
  // Written by plan() only, read by all between barriers.
  Tick moved_at_ = 0;  // the last boundary before which something moved, or no packet waited
  Tick end_ = 0, sample_at_ = 0, look_at_ = kNever, look_every_ = 0;
  std::vector<VcUse> uses_;  // since the last sample
  int parity_ = 1;           // of the mail that is read; the first plan() turns it to what start() wrote
  Tick interlude_at_ = kNever;
  bool between_ = false;  // two interludes
  bool stop_ = false, measuring_ = false;
  int paced_ = 0, stalled_ = 0;
  Counters previous_;
  RunOutcome outcome_;
  std::atomic<unsigned> waiting_{0};
  std::atomic<std::uint64_t> round_{0};
};

}  // namespace orrery::sim
