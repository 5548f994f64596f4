// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/message/message.hpp"
#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/seeds.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>

// The world in a box for what is said rather than put: processes post datagrams, send messages through
// mailboxes, die and come back in random order, against a plain model of which must have met and what must
// have come. ORRERY_TEST_SEED replays one world; ORRERY_LONG_TESTS=1 tries 100,000.
namespace orrery::nic {
namespace {

using box::Path;

constexpr int kSlots = 4;
constexpr int kLines = 3;  // endpoints for datagrams of each process
constexpr MailboxShape kShape{.credits = 3, .max_bytes = 300};
constexpr std::uint64_t kBoxBytes = kPageBytes;
static_assert(kShape.bytes() <= kBoxBytes);

struct Life;

// A datagram that was posted.
struct Post {
  std::uint64_t id = 0;
  Life* from = nullptr;
  Life* to = nullptr;  // null: a wildcard
  DatagramStatus status = DatagramStatus::pending;
  const Post* partner = nullptr;
  std::uint64_t in = 0;
};

struct Line {
  std::unique_ptr<Endpoint> endpoint;
  Post* post = nullptr;
};

// One direction's end of a mailbox connection between two lives.
struct Talk {
  std::unique_ptr<Endpoint> endpoint;
  Life* peer = nullptr;
  Talk* other = nullptr;
  std::uint64_t sent = 0;
  std::uint64_t taken = 0;  // of what the other sent, released
};

struct Life {
  Life(int s, std::uint32_t g) : slot(s), generation(g) {
    pages = static_cast<std::byte*>(
        mmap(nullptr, kSlots * kBoxBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ORRERY_CHECK(pages != MAP_FAILED, "no memory");
  }
  ~Life() { munmap(pages, kSlots * kBoxBytes); }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  const int slot;
  const std::uint32_t generation;
  bool alive = true;
  std::array<bool, kSlots> told{};     // by slot of the listener: it heard that this life is over
  std::array<bool, kSlots> sources{};  // by slot: a process there has posted to this life
  std::byte* pages = nullptr;
  MemKey key;
  CompletionQueue* sent = nullptr;
  std::array<Line, kLines> lines;
  std::deque<Talk> talks;
};

class MessageWorld {
 public:
  MessageWorld(std::uint64_t seed, Path path) : random_(seed), world_(kSlots, path, {.adopt_after = 5}) {
    for (int slot = 0; slot < kSlots; ++slot) at_[static_cast<std::size_t>(slot)] = be_born(slot, 0);
  }

  std::string run(int steps) {
    for (step_ = 0; step_ < steps && failure_.empty(); ++step_) step();
    if (failure_.empty()) let_all_end();
    return failure_;
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = fmt::format("step {}: {}", step_, what);
  }
  Life* living() {
    Life* life = at_[below(kSlots)];
    return life->alive ? life : nullptr;
  }
  Nic& nic(const Life& life) { return world_[life.slot].nic(); }

  Life* be_born(int slot, std::uint32_t generation) {
    lives_.push_back(std::make_unique<Life>(slot, generation));
    Life& life = *lives_.back();
    life.key = nic(life)
                   .register_region(world_[slot].port(), reinterpret_cast<std::uint64_t>(life.pages),
                                    kSlots * kBoxBytes, 0, nullptr)
                   .value();
    life.sent = nic(life).create_queue(64, 0).value();
    for (Line& line : life.lines) {
      line.endpoint = std::make_unique<Endpoint>();
      line.endpoint->port = &world_[slot].port();
    }
    return &life;
  }

  void step() {
    Life* const life = living();
    if (life == nullptr) return;
    const std::uint64_t choice = below(100);
    if (choice < 25) return post(*life);
    if (choice < 40) return test(*life, life->lines[below(kLines)]);
    if (choice < 43) return cancel(*life, life->lines[below(kLines)]);
    if (choice < 46) return connect(*life);
    if (choice < 64) return send(*life);
    if (choice < 82) return receive(*life);
    if (choice < 96) return void(nic(*life).serve());
    if (choice < 97) return die(*life);
    if (choice < 98) return tell(*life);
    Life* const place = at_[below(kSlots)];
    if (place->alive) return;
    world_.revive(place->slot);
    at_[static_cast<std::size_t>(place->slot)] = be_born(place->slot, place->generation + 1);
  }

  // ---- datagrams: every step is whole, so the model knows exactly which posts meet ----
  void post(Life& life) {
    Line& line = life.lines[below(kLines)];
    const bool wildcard = below(3) == 0;
    Life* const to = wildcard ? nullptr : at_[below(kSlots)];
    Errc expected = line.post != nullptr ? Errc::no_resource : Errc::ok;
    for (const Post& other : posts_) {
      // A life that took the place of another is the same address.
      if (to != nullptr && other.from == &life && other.to != nullptr && other.to->slot == to->slot &&
          other.status == DatagramStatus::pending)
        expected = Errc::no_resource;
    }
    if (line.post == nullptr) {
      line.endpoint->bound = !wildcard;
      line.endpoint->remote_nic_address = to == nullptr ? 0 : static_cast<std::uint32_t>(to->slot);
      line.endpoint->remote_instance = line.endpoint->remote_nic_address;
    } else if (line.endpoint->bound != !wildcard) {
      return;
    } else if (to != nullptr && line.endpoint->remote_instance != static_cast<std::uint32_t>(to->slot)) {
      return;
    }
    const std::uint64_t id = posts_.size() + 1;
    posts_.push_back({.id = id, .from = &life, .to = to});
    Post& made = posts_.back();
    const auto bytes = std::as_bytes(std::span(&made.id, 1));
    const Errc posted = nic(life).datagrams().post(*line.endpoint, bytes, std::nullopt,
                                                   std::as_writable_bytes(std::span(&made.in, 1)));
    if (posted != expected)
      return fail(fmt::format("post {} gave {}, not {}", id, errc_name(posted), errc_name(expected)));
    if (posted != Errc::ok) {
      posts_.pop_back();
      return;
    }
    line.post = &made;
    if (to != nullptr && !to->alive) {
      made.status = DatagramStatus::failed;
      return;
    }
    if (to != nullptr) to->sources[static_cast<std::size_t>(life.slot)] = true;
    if (Post* partner = to != nullptr ? partner_of_bound(made) : partner_of_wildcard(made))
      meet(made, *partner);
  }
  Post* partner_of_bound(const Post& made) {
    Post* wildcard = nullptr;
    for (Post& other : posts_) {
      if (other.from != made.to || other.status != DatagramStatus::pending || &other == &made) continue;
      // A port is an address: a process that comes back to it is met by what was bound to the one before.
      if (other.to != nullptr && other.to->slot == made.from->slot) return &other;
      if (other.to == nullptr && wildcard == nullptr) wildcard = &other;
    }
    return wildcard;
  }
  // The oldest of the first process that has one. Processes are looked through by slot.
  Post* partner_of_wildcard(const Post& made) {
    for (Life* from : at_) {
      if (!from->alive || !made.from->sources[static_cast<std::size_t>(from->slot)]) continue;
      for (Post& other : posts_) {
        if (other.from == from && other.to != nullptr && other.to->slot == made.from->slot &&
            other.status == DatagramStatus::pending)
          return &other;
      }
    }
    return nullptr;
  }
  std::string describe() const {
    std::string text;
    for (const Post& p : posts_) {
      text += fmt::format(
          "{}: {}.{} to {} status {} partner {}; ", p.id, p.from->slot, p.from->generation,
          p.to == nullptr ? std::string("any") : fmt::format("{}.{}", p.to->slot, p.to->generation),
          static_cast<int>(p.status), p.partner == nullptr ? 0 : p.partner->id);
    }
    return text;
  }
  static void meet(Post& a, Post& b) {
    a.status = b.status = DatagramStatus::completed;
    a.partner = &b;
    b.partner = &a;
  }
  void test(Life& life, Line& line) {
    DatagramOutcome outcome;
    const Errc found = nic(life).datagrams().test(*line.endpoint, std::nullopt, &outcome);
    if (found != (line.post == nullptr ? Errc::no_match : Errc::ok))
      return fail("a test finds what is not there");
    if (line.post == nullptr) return;
    Post& post = *line.post;
    if (post.status == DatagramStatus::pending && post.to != nullptr &&
        post.to->told[static_cast<std::size_t>(life.slot)])
      post.status = DatagramStatus::failed;
    if (post.status == DatagramStatus::pending && post.to == &life) meet(post, post);  // bound back to itself
    if (outcome.status != post.status) {
      return fail(fmt::format("post {} is in state {}, not {}", post.id, static_cast<int>(outcome.status),
                              static_cast<int>(post.status)));
    }
    if (post.status == DatagramStatus::pending) return;
    if (post.status == DatagramStatus::completed &&
        (post.in != post.partner->id ||
         outcome.remote_instance != static_cast<std::uint32_t>(post.partner->from->slot)))
      return fail(fmt::format("post {} met {}, not {}: {}", post.id, post.in, post.partner->id, describe()));
    line.post = nullptr;
  }
  void cancel(Life& life, Line& line) {
    const bool open = line.post != nullptr && line.post->status == DatagramStatus::pending;
    const Errc done = nic(life).datagrams().cancel(*line.endpoint, std::nullopt);
    if (done != (open ? Errc::ok : Errc::no_match)) return fail("cancel does not know the post's state");
    if (open) line.post->status = DatagramStatus::terminated;
  }

  // ---- mailboxes: box j of a life is for the process in slot j ----
  MailboxPlace place(const Life& owner, const Life& peer) const {
    return {owner.key,
            reinterpret_cast<std::uint64_t>(owner.pages) + static_cast<std::uint64_t>(peer.slot) * kBoxBytes};
  }
  void connect(Life& life) {
    Life* const peer = at_[below(kSlots)];
    if (peer == &life || !peer->alive) return;
    for (const Talk& talk : life.talks) {
      if (talk.peer->slot == peer->slot) return;  // its box was used before
    }
    for (const Talk& talk : peer->talks) {
      if (talk.peer->slot == life.slot) return;
    }
    Talk& ours = life.talks.emplace_back();
    Talk& theirs = peer->talks.emplace_back();
    ours.peer = peer;
    ours.other = &theirs;
    theirs.peer = &life;
    theirs.other = &ours;
    ours.endpoint = world_.endpoint(life.slot, peer->slot, life.sent);
    theirs.endpoint = world_.endpoint(peer->slot, life.slot, peer->sent);
    open(life, ours);
    // The other may open its end when it first looks.
    if (below(2) == 0) open(*peer, theirs);
  }
  void open(Life& life, Talk& talk) {
    if (nic(life).messages().open(*talk.endpoint, kShape, place(life, *talk.peer), place(*talk.peer, life)) !=
        Errc::ok)
      fail("a connection was refused");
  }
  Talk* choose(Life& life) {
    if (life.talks.empty()) return nullptr;
    Talk& talk = life.talks[below(life.talks.size())];
    if (talk.endpoint->mailbox != nullptr) return &talk;
    // A key cannot tell a process from its successor: a late one meets another process.
    if (at_[static_cast<std::size_t>(talk.peer->slot)] != talk.peer) return nullptr;
    open(life, talk);
    return &talk;
  }
  static std::uint64_t size_of(std::uint64_t number) { return 8 + number * 37 % 290; }
  void send(Life& life) {
    Talk* const talk = choose(life);
    if (talk == nullptr) return;
    take_sent(life);
    const std::vector<std::uint8_t> data(size_of(talk->sent) - 8, static_cast<std::uint8_t>(talk->sent));
    const Errc sent = send_message(nic(life), *talk->endpoint, std::as_bytes(std::span(&talk->sent, 1)),
                                   std::as_bytes(std::span(data)),
                                   {.id = 1, .tag = static_cast<std::uint8_t>(talk->sent % 200)});
    const bool told = talk->peer->told[static_cast<std::size_t>(life.slot)];
    const std::uint64_t open = talk->sent - talk->other->taken;
    if (told && sent != Errc::invalid_state) return fail("a message to a process that is known to be dead");
    if (!told && talk->peer->alive && sent == Errc::invalid_state) return fail("a good connection is broken");
    if (sent == Errc::ok && open >= kShape.credits) return fail("more messages than credits");
    if (sent == Errc::not_done && open < kShape.credits && world_.path() == Path::direct)
      return fail("a credit was lost");
    if (sent == Errc::ok) ++talk->sent;
  }
  void take_sent(Life& life) {
    Event event;
    while (nic(life).poll(*life.sent, &event) == Errc::ok) {
      void* none = nullptr;
      if (event.kind != EventKind::message_sent ||
          !life.sent->collect(static_cast<std::uint32_t>(event.data >> 32), &none))
        return fail("an event that was not asked for");
    }
  }
  void receive(Life& life) {
    if (Talk* const talk = choose(life)) receive(life, *talk);
  }
  bool receive(Life& life, Talk& talk) {
    ReceivedMessage message;
    const Errc found = next_message(nic(life), *talk.endpoint, kAnyTag, &message);
    if (found == Errc::ok) {
      if (talk.taken == talk.other->sent) return fail("a message that was not sent"), false;
      std::uint64_t number = 0;
      std::memcpy(&number, message.at, sizeof number);
      bool right = number == talk.taken && message.bytes == size_of(number) && message.tag == number % 200;
      for (std::uint64_t i = 8; right && i < message.bytes; ++i)
        right = message.at[i] == static_cast<std::byte>(number);
      if (!right) return fail("a message came wrong, or not in order"), false;
      if (release_message(nic(life), *talk.endpoint) != Errc::ok) fail("a message cannot be released");
      ++talk.taken;
      return true;
    }
    // A peer that is gone leaves the mailbox as it was.
    if (found == Errc::invalid_state) fail("a good mailbox is called broken");
    if (world_.path() == Path::direct && talk.taken != talk.other->sent) fail("a message is not there");
    return false;
  }

  // ---- life and death ----
  void die(Life& life) {
    if (std::count_if(at_.begin(), at_.end(), [](const Life* l) { return l->alive; }) < 3) return;
    life.alive = false;
    world_[life.slot].alive_here = false;
    for (Post& post : posts_) {
      if (post.from == &life && post.status == DatagramStatus::pending)
        post.status = DatagramStatus::terminated;
    }
  }
  void tell(Life& listener) {
    for (const auto& life : lives_) {
      const auto slot = static_cast<std::size_t>(listener.slot);
      if (life->alive || life->told[slot] || life->slot == listener.slot) continue;
      life->told[slot] = true;
      nic(listener).attendant().peer_died({static_cast<wire::ProcessSlot>(life->slot), life->generation});
      return;
    }
  }
  void let_all_end() {
    for (Life* life : at_) {
      for (std::size_t i = 0; life->alive && i < lives_.size(); ++i) tell(*life);
    }
    for (int round = 0; round < 200; ++round) {
      world_.serve_all();
      for (Life* life : at_) {
        if (life->alive) take_sent(*life);
      }
    }
    for (Life* life : at_) {
      if (!life->alive) continue;
      for (Line& line : life->lines) test(*life, line);
      for (Talk& talk : life->talks) {
        if (talk.endpoint->mailbox == nullptr && at_[static_cast<std::size_t>(talk.peer->slot)] == talk.peer)
          open(*life, talk);
        if (talk.endpoint->mailbox == nullptr) continue;
        while (failure_.empty() && receive(*life, talk)) {
        }
        if (talk.peer->alive && talk.taken != talk.other->sent) fail("a message never came");
      }
      if (life->sent->posts_open() != 0) fail("a message never ended");
    }
  }

  std::mt19937_64 random_;
  box::World world_;
  std::vector<std::unique_ptr<Life>> lives_;
  std::array<Life*, kSlots> at_{};
  std::deque<Post> posts_;
  std::string failure_;
  int step_ = 0;
};

class MessagesInABox : public ::testing::TestWithParam<Path> {};

INSTANTIATE_TEST_SUITE_P(Paths, MessagesInABox, ::testing::Values(Path::direct, Path::frame, Path::adopt),
                         [](const auto& info) {
                           return info.param == Path::direct  ? "Direct"
                                  : info.param == Path::frame ? "Frame"
                                                              : "Adopt";
                         });

TEST_P(MessagesInABox, WhoMeetsAndWhatComesIsWhatTheModelSays) {
  constexpr int kSteps = 400;
  box::for_every_seed(60, 33'334,
                      [](std::uint64_t seed) { return MessageWorld(seed, GetParam()).run(kSteps); });
}

}  // namespace
}  // namespace orrery::nic
