// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The order in which requests of an endpoint take effect while their target goes from frames to direct and
// back: at any moment what is in memory, and in the target's queue, is what the first so many of them do.
// One that is kInOrder comes behind those of the process's other endpoint, too.
#include "emu/nic/initiator/fast_path.hpp"
#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/seeds.hpp"
#include "tests/emu/nic/world_model.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace orrery::nic {
namespace {

using box::Path;
using box::Random;
using box::World;

constexpr int kOwner = 0;
constexpr std::size_t kWriters = 4;   // two endpoints of each of two processes
constexpr std::uint64_t kPages = 12;  // three parts of the box's adoption
constexpr std::uint64_t kWordsOfAPage = kPageBytes / sizeof(std::uint64_t);

// A request of a writer. It stores its number, from 1 on.
struct Posted {
  std::vector<std::uint64_t*> words;  // in the order in which they are stored
  bool raises_event = false;
  // So many requests of the process's other endpoint: it is kInOrder, or behind one that is.
  std::uint64_t follows = 0;
};

struct Writer {
  std::size_t index = 0;
  int node = 0;
  CompletionQueue* queue = nullptr;
  std::unique_ptr<Endpoint> endpoint;
  std::deque<std::uint64_t> values;  // sources
  std::vector<Posted> posted;
  std::vector<std::uint64_t> raising;  // numbers of those that raise events at the target
  std::size_t arrived = 0;             // so many of those events came

  // How many requests took effect, by what is in memory.
  std::uint64_t seen_in_memory() const {
    std::uint64_t applied = 0;
    for (const Posted& one : posted)
      for (const std::uint64_t* word : one.words) applied = std::max(applied, load(word));
    return applied;
  }

  // How many requests of the other endpoint took effect before the first so many of this one did.
  std::uint64_t implied(std::uint64_t applied) const {
    return applied == 0 ? 0 : posted[applied - 1].follows;
  }

  // What contradicts that the first so many requests, `at_least` of them, took effect and no other did.
  std::string wrong(std::uint64_t at_least) const {
    const std::uint64_t applied = std::max(at_least, seen_in_memory());
    std::vector<const std::uint64_t*> seen;
    for (std::uint64_t number = applied; number > 0; --number) {
      const auto& words = posted[number - 1].words;
      for (auto word = words.rbegin(); word != words.rend(); ++word) {
        if (std::find(seen.begin(), seen.end(), *word) != seen.end()) continue;
        seen.push_back(*word);
        const std::uint64_t value = load(*word);
        // A service thread may be in the middle of the last one: its first word is stored first.
        const bool half_done =
            number == applied && word == words.rbegin() && words.size() > 1 && value < number;
        if (value < number && !half_done)
          return "writer " + std::to_string(index) + ": request " + std::to_string(applied) +
                 " took effect before " + std::to_string(number) + ", whose word holds " +
                 std::to_string(value);
      }
    }
    return "";
  }
  static std::uint64_t load(const std::uint64_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
};

Nic::Options options_of_the_world() {
  Nic::Options options;
  options.adopt_after = 8;
  options.bte_crossover = UINT64_MAX;
  return options;
}

class OrderWorld {
 public:
  explicit OrderWorld(std::uint64_t seed) : random_(seed), world_(3, Path::adopt, options_of_the_world()) {
    void* const base = mmap(nullptr, 3 * kExtentBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(base, MAP_FAILED);
    base_ = base;
    const std::uint64_t begin =
        (reinterpret_cast<std::uint64_t>(base) + kExtentBytes - 1) & ~(kExtentBytes - 1);
    pages_ = reinterpret_cast<std::uint64_t*>(begin);
    space_ = reinterpret_cast<std::uint64_t*>(begin + kExtentBytes);
    arrivals_ = world_[kOwner].nic().create_queue(4096, 0).value();
    for (std::size_t key = 0; key < 2; ++key) keys_[key] = registered();
    keys_[2] = world_[kOwner].nic().regions().register_space(world_[kOwner].port(), 0, arrivals_).value();
    for (std::size_t i = 0; i < kWriters; ++i) {
      Writer& writer = writers_[i];
      writer.index = i;
      writer.node = 1 + static_cast<int>(i % 2);
      writer.queue = world_[writer.node].nic().create_queue(32, 0).value();
      writer.endpoint = world_.endpoint(writer.node, kOwner, writer.queue);
      writer.endpoint->remote_event_data = static_cast<std::uint32_t>(i);
    }
    world_.attach = random_.chance(30);
  }
  ~OrderWorld() { munmap(base_, 3 * kExtentBytes); }

  // One thread plays all processes; between a part's beginning and its end the others go on.
  std::string run(int steps) {
    world_.during_switch = [&](int) {
      ++switches;
      if (!quiet_)
        for (std::uint64_t i = random_.below(12); i != 0; --i) step_of_a_writer();
    };
    for (int i = 0; i < steps && failure_.empty(); ++i) {
      if (random_.chance(75))
        step_of_a_writer();
      else
        step_of_the_owner();
    }
    let_all_end();
    return failure_;
  }

  // Threads: each of the writers, and this one for the owner.
  std::string race(int requests) {
    world_.during_switch = [&](int) {
      ++switches;
      for (int i = 0; i < 20; ++i) std::this_thread::yield();
    };
    std::atomic<std::size_t> running{kWriters};
    std::vector<std::thread> threads;
    for (Writer& writer : writers_) {
      threads.emplace_back([&, mine = Random(random_.below(UINT32_MAX))]() mutable {
        for (int i = 0; i < requests;) {
          i += post(writer, mine) ? 1 : 0;
          reap(writer);
        }
        while (!writer.endpoint->is_idle()) reap(writer), std::this_thread::yield();
        --running;
      });
    }
    while (running != 0) step_of_the_owner();
    for (std::thread& thread : threads) thread.join();
    let_all_end();
    return failure_;
  }

  int switches = 0;
  int backs = 0;

 private:
  MemKey registered() {
    return world_[kOwner]
        .nic()
        .register_region(world_[kOwner].port(), reinterpret_cast<std::uint64_t>(pages_), kPages * kPageBytes,
                         0, arrivals_)
        .value();
  }

  // A writer's own words: three of each page, the first and the last page of each part among them.
  std::uint64_t* word_of(const Writer& writer, std::size_t key, Random& random) const {
    std::uint64_t* const memory = key == 2 ? space_ : pages_;
    const std::uint64_t page = std::array<std::uint64_t, 4>{0, 3, 5, kPages - 1}[random.below(4)];
    return memory + page * kWordsOfAPage + writer.index * 8 + random.below(3);
  }

  // Of the same process.
  const Writer& other_of(const Writer& writer) const { return writers_[writer.index ^ 2]; }

  bool post(Writer& writer, Random& random) {
    // The owner's thread looks at what was posted, and makes keys anew.
    const std::lock_guard lock(mu_);
    const std::uint64_t number = writer.posted.size() + 1;
    const std::size_t key = random.below(keys_.size());
    Posted posted{.words = {word_of(writer, key, random)}, .raises_event = random.chance(30)};
    writer.values.push_back(number);
    Request request = box::put_word(&writer.values.back(), posted.words[0], keys_[key], 0);
    const std::uint64_t kind = random.below(10);
    if (kind < 2) {
      request.flags |= kSyncFlag;
      posted.words.push_back(word_of(writer, key, random));
      request.sync_address = reinterpret_cast<std::uint64_t>(posted.words[1]);
      request.sync_value = number;
      if (posted.words[0] == posted.words[1]) posted.words.pop_back();
    } else if (kind == 2) {
      request.op = Op::amo;
      request.command = amo::command(AmoOp::swap, 0);
      request.operand[0] = number;
    } else if (kind == 3) {
      request.op = Op::cq_write;
      request.cq_data = writer.index;
      posted.words.clear();
      posted.raises_event = true;
    }
    posted.follows = writer.implied(writer.posted.size());
    if (random.chance(20)) {
      request.flags |= kInOrder;
      posted.follows = other_of(writer).posted.size();
    }
    if (random.chance(50)) request.flags |= random.chance(50) ? kGlobalEvent : kLocalEvent;
    if (posted.raises_event && request.op != Op::cq_write) request.flags |= kRemoteEvent;
    const Errc accepted = world_[writer.node].nic().post(*writer.endpoint, request);
    if (accepted != Errc::ok) {
      if (accepted != Errc::no_resource) fail("a request was refused: " + std::string(errc_name(accepted)));
      writer.values.pop_back();
      return false;
    }
    writer.posted.push_back(posted);
    if (posted.raises_event) writer.raising.push_back(number);
    return true;
  }

  void reap(Writer& writer) {
    Event event;
    while (world_[writer.node].nic().poll(*writer.queue, &event) == Errc::ok) {
      void* context = nullptr;
      if (event.status != Errc::ok || !writer.queue->collect(event.transaction(), &context))
        fail("a request ended in " + std::string(errc_name(event.status)));
    }
  }

  void step_of_a_writer() {
    Writer& writer = writers_[random_.below(kWriters)];
    if (random_.chance(70))
      (void)post(writer, random_);
    else
      reap(writer);
    check();
  }

  void step_of_the_owner() {
    if (random_.chance(90))
      world_[kOwner].nic().serve();
    else
      go_back();
    take_arrivals();
    check();
  }

  // What was direct goes by frame again: pages leave, and a registration is made anew on those that left.
  void go_back() {
    ++backs;
    const auto unmap = [&](std::uint64_t* memory) {
      const auto begin = reinterpret_cast<std::uint64_t>(memory);
      world_[kOwner].unmap(begin, begin + kPages * kPageBytes);
    };
    if (random_.chance(70)) return unmap(space_);
    const std::lock_guard lock(mu_);
    quiet_ = true;
    for (Writer& writer : writers_)
      if (!world_.settle(writer.node, *writer.endpoint)) return fail("an endpoint is never idle");
    quiet_ = false;
    for (std::size_t key = 0; key < 2; ++key) EXPECT_TRUE(world_[kOwner].nic().deregister(keys_[key]).ok());
    unmap(pages_);
    for (std::size_t key = 0; key < 2; ++key) keys_[key] = registered();
  }

  void take_arrivals() {
    Event event;
    while (arrivals_->take(&event) == Errc::ok) {
      const std::uint64_t from = event.data & 0xffff'ffff;
      if (from >= kWriters) return fail("an event that no writer raised");
      const std::lock_guard lock(mu_);
      Writer& writer = writers_[from];
      if (writer.arrived == writer.raising.size()) return fail("an event came twice");
      if (const std::string wrong = writer.wrong(writer.raising[writer.arrived++]); !wrong.empty())
        fail(wrong);
    }
  }

  void check() {
    const std::lock_guard lock(mu_);
    if (!world_.violation.empty()) fail(world_.violation);
    // Of each writer as much as the requests of the other endpoint imply that had taken effect before.
    std::array<std::uint64_t, kWriters> implied{};
    for (const Writer& writer : writers_) implied[writer.index ^ 2] = writer.implied(writer.seen_in_memory());
    for (const Writer& writer : writers_)
      if (const std::string wrong = writer.wrong(implied[writer.index]); !wrong.empty()) fail(wrong);
  }

  void let_all_end() {
    quiet_ = true;
    for (Writer& writer : writers_) {
      if (!world_.settle(writer.node, *writer.endpoint)) fail("an endpoint is never idle");
      reap(writer);
    }
    world_.serve_all();
    take_arrivals();
    for (const Writer& writer : writers_) {
      if (const std::string wrong = writer.wrong(writer.posted.size()); !wrong.empty()) fail(wrong);
      if (writer.arrived != writer.raising.size())
        fail("writer " + std::to_string(writer.index) + ": " + std::to_string(writer.arrived) + " of " +
             std::to_string(writer.raising.size()) + " events came");
    }
  }

  void fail(const std::string& what) {
    const std::lock_guard lock(failure_mu_);
    if (failure_.empty()) failure_ = what;
  }

  Random random_;
  World world_;
  void* base_ = nullptr;
  std::uint64_t* pages_ = nullptr;  // under two registrations
  std::uint64_t* space_ = nullptr;  // under one of the whole address space
  CompletionQueue* arrivals_ = nullptr;
  std::array<MemKey, 3> keys_;
  std::array<Writer, kWriters> writers_;
  std::recursive_mutex mu_;  // what was posted, and the keys
  std::mutex failure_mu_;
  std::string failure_;
  bool quiet_ = false;  // no more posts while pages move
};

TEST(OrderWhileMemoryMoves, IsThatOfThePosts) {
  int switches = 0, backs = 0;
  box::for_every_seed(150, 100'000, [&](std::uint64_t seed) {
    OrderWorld world(seed);
    const std::string wrong = world.run(600);
    switches += world.switches;
    backs += world.backs;
    return wrong;
  });
  EXPECT_GT(switches, 0);
  EXPECT_GT(backs, 0);
}

TEST(OrderWhileMemoryMoves, IsThatOfThePostsOfEachThread) {
  box::for_every_seed(6, 1000, [](std::uint64_t seed) { return OrderWorld(seed).race(400); });
}

}  // namespace
}  // namespace orrery::nic
