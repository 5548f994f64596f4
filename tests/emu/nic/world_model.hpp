// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/target/amo_unit.hpp"
#include "tests/emu/nic/box.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

// A plain model of what N NICs do to memory and which events they raise, next to the NICs themselves.
//
// Operations whose bytes overlap one that is still under way are not posted, so that each byte has one right
// value once its operation is over. What an operation may end in is a set: what is wrong with it when it is
// posted decides alone, unless its key is withdrawn or its target dies before it is over.
namespace orrery::nic::box {

// Flags of an operation that tells its outcome.
inline constexpr std::uint32_t kReports = kLocalEvent | kGlobalEvent;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  bool chance(unsigned percent) { return below(100) < percent; }

 private:
  std::mt19937_64 engine_;
};

// A set of outcomes.
class Outcomes {
 public:
  Outcomes(std::initializer_list<Errc> codes) {
    for (const Errc code : codes) add(code);
  }
  void add(Errc code) { bits_ |= 1u << static_cast<unsigned>(code); }
  bool has(Errc code) const { return (bits_ >> static_cast<unsigned>(code) & 1) != 0; }
  bool only(Errc code) const { return bits_ == 1u << static_cast<unsigned>(code); }

 private:
  std::uint32_t bits_ = 0;
};

// Whether an operation changes its target's memory.
constexpr bool changes_memory(Op op) { return op == Op::put || op == Op::amo; }

inline constexpr std::uint64_t kWorldBytes = 16 * kPageBytes;  // memory of one process

// One life of one process.
struct Life {
  Life(int s, std::uint32_t g) : slot(s), generation(g), model(kWorldBytes), busy(kWorldBytes) {
    void* const pages =
        mmap(nullptr, kWorldBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ORRERY_CHECK(pages != MAP_FAILED, "no memory for a process");
    real = static_cast<std::uint8_t*>(pages);
  }
  ~Life() { munmap(real, kWorldBytes); }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  const int slot;
  const std::uint32_t generation;
  bool alive = true;
  std::vector<bool> told_dead;  // by slot of the listener: it was told that this life is over
  std::uint8_t* real = nullptr;
  std::vector<std::uint8_t> model;
  std::vector<std::int16_t> busy;  // -1: being written, for ever if the writer died; n > 0: read n times
};

struct Queue {
  CompletionQueue* queue = nullptr;
  Life* owner = nullptr;
  bool source = false;  // posts of its owner report here
  bool overrun = false;
  std::uint64_t most = 0;  // events that may have been in it at once
};

struct Piece {
  std::uint64_t offset;  // in the life's memory
  std::uint64_t length;
};

struct Region {
  Life* owner = nullptr;
  Queue* queue = nullptr;
  MemKey key;
  bool live = true;
  std::vector<Piece> pieces;  // more than one: addressed by offsets from 0
  std::uint64_t length() const {
    std::uint64_t sum = 0;
    for (const Piece& piece : pieces) sum += piece.length;
    return sum;
  }
};

struct Line {  // an endpoint and what was posted by it
  std::unique_ptr<Endpoint> endpoint;
  Life* from = nullptr;
  int to = 0;
  Life* peer = nullptr;  // the life in `to` when the endpoint first reached one there
  Queue* queue = nullptr;
  bool stranger = false;  // of another domain
};

// Notes the end of an operation: the NIC calls it with locks held, and within the post itself.
struct Ear final : Listener {
  int times = 0;
  Errc status = Errc::not_done;
  void ended(const Completion&, const Ending& ending) override {
    ++times;
    status = ending.status;
  }
};

struct Operation {
  std::uint32_t id = 0;
  Op op = Op::put;
  std::uint32_t flags = 0;
  Line* line = nullptr;
  Life* target = nullptr;
  Region* region = nullptr;
  std::vector<Piece> bytes;          // of the target that it reads or writes, in order; the sync flag last
  std::vector<std::uint8_t> wanted;  // what they are afterwards, when it writes
  std::uint8_t command = 0;          // of an AMO
  std::vector<std::uint8_t> old;     // what a fetching one finds
  std::vector<std::uint8_t> buffer;  // source or destination
  Outcomes may{};
  bool was_ok = false;  // nothing was wrong with it when it was posted
  bool over = false;
  Errc status = Errc::not_done;  // not_done although over: it will never be told
  int local_events = 0, global_events = 0, remote_events = 0;
  std::unique_ptr<Ear> ear;  // null: none is told
};

// The simulated world. Every rule that does not hold is kept as `failure`, the first one alone.
class Simulation {
 public:
  Simulation(std::uint64_t seed, Path path);
  ~Simulation();
  // Takes `steps` random steps, lets everything end and checks what is left. Returns what went wrong, or "".
  std::string run(int steps);

 private:
  // steps
  void step();
  void post();
  bool poll(Queue& queue);  // whether there was an event
  void make_region(Life& life);
  void drop_region();
  void make_or_drop_queue();
  void make_line(Life& from);
  void rebind();
  void die();
  void tell();
  void revive();

  // the model
  void fail(const std::string& what);
  Life* living();
  Queue* make_queue(Life& life, std::uint32_t depth);
  Line* choose_line();
  Region* choose_region(const Life& owner);
  bool choose_target(Operation& operation, Request& request);
  void choose_command(Operation& operation, Request& request);
  Errc choose_words(Operation& operation, const Request& request, std::uint64_t from);
  Outcomes outcomes_of(const Operation& operation, Errc base) const;
  bool room_for_events(const Operation& operation) const;
  static std::vector<Piece> pieces_of(const Region& region, std::uint64_t from, std::uint64_t length);
  static bool available(const Life& life, const std::vector<Piece>& bytes, bool writes);
  static void occupy(Operation& operation, int change);
  void heard(Operation& operation, const Event& event);
  void heard_at_target(Queue& queue, const Event& event);
  void count_events(Queue& queue);
  void check_overrun(Queue& queue);
  void finish(Operation& operation, Errc status);
  void settle_silent();
  void hear_listeners();
  bool in_place(const Operation& operation) const;
  void check_all();
  void tell_all();
  void let_all_end();

  Random random_;
  bool lazy_;  // the NICs' AMO caches are
  World world_;
  std::vector<bool> moving_;  // by slot: its pages are being moved
  std::vector<std::unique_ptr<Life>> lives_;
  std::vector<Life*> at_;  // by slot
  std::deque<Queue> queues_;
  std::deque<Region> regions_;
  std::deque<Line> lines_;
  std::deque<Operation> operations_;
  std::vector<Operation*> open_;
  std::string failure_;
  int step_ = 0;
};

}  // namespace orrery::nic::box
