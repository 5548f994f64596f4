// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/completions.hpp"
#include "lib/dmapp/queue_protocol.hpp"
#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/seeds.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

// The world in a box for message queues: PEs with NICs of their own in one thread, whose queues have one to
// three slots. A seed decides which thread of which PE goes on by one step, whether the callbacks have a
// thread of their own, which message's callback sends on, and which PE dies. A model says what each queue
// may hear.
namespace orrery::dmapp::message {
namespace {

using nic::box::Path;

constexpr std::size_t kMostWords = 40;
constexpr int kStuck = 60'000;  // steps; a world takes 3,000

class QueueWorld;

// A message: what it says of itself, and filling.
struct Head {
  std::uint64_t sender;  // the thread: 2 * PE + 1 for a callback's
  std::uint64_t serial;  // of that thread's messages to this PE
  std::uint64_t hops;    // how often it is to be sent on
  std::uint64_t words;   // of the message
};

// One thread of a PE that sends.
struct Thread {
  Completions completions;
  std::vector<std::unique_ptr<nic::Endpoint>> endpoints;  // by PE
  Tracker tracker;
  std::vector<std::uint64_t> words;  // of the message under way
  std::optional<Send<struct Sender>> send;
  std::unique_ptr<struct Sender> sender;
  std::map<int, std::uint64_t> sent;  // by PE, how many
  int to = 0;
};

struct Sender {
  QueueWorld& world;
  Thread& thread;
  std::optional<std::uint64_t> name(int pe);
  void watch(int) {}
  bool alive(int pe) const;
  Errc start(int pe, nic::MemKey channel);
  std::optional<Errc> ended();
};

// One PE and its queue.
struct Pe {
  QueueWorld* world = nullptr;
  int number = 0;
  bool alive = true;
  bool has_thread = false;
  bool attached = false;
  int wanted = 0;                 // messages that its own thread still has to send
  std::array<Thread, 2> threads;  // its own; the callback's
  std::uint64_t name = 0;
  std::vector<std::uint64_t> slots;
  nic::CompletionQueue* arrivals = nullptr;
  nic::MemKey key;
  std::optional<nic::ChannelName> channel;
  std::optional<Receive<Pe>> receive;
  bool in_callback = false;
  int callback_steps = 0;
  std::map<std::uint64_t, std::uint64_t> heard;  // by sending thread, how many
  std::uint64_t given = 0;                       // messages to it whose senders were told that they are sent

  std::optional<Message> take();
  bool call(void* data, std::uint32_t bytes, int from);
  void post(std::byte* slot);
};

class QueueWorld {
 public:
  QueueWorld(std::uint64_t seed, Path path, bool kills)
      : random_(seed), world_(2 + below(4), path, {.adopt_after = 5}) {
    depth_ = 1 + static_cast<std::size_t>(below(3));
    kills_left_ = kills ? 1 + below(2) : 0;
    for (int i = 0; i < npes(); ++i) {
      pes_.push_back(std::make_unique<Pe>());
      Pe& pe = *pes_.back();
      pe.world = this;
      pe.number = i;
      pe.wanted = below(10);
      pe.has_thread = below(2) != 0;
      for (Thread& thread : pe.threads) {
        ORRERY_CHECK(thread.completions.open(world_[i].nic(), 4).ok(), "no queue");
        for (int to = 0; to < npes(); ++to)
          thread.endpoints.push_back(world_.endpoint(i, to, thread.completions.queue()));
        for (auto& endpoint : thread.endpoints) endpoint->remote_event_data = static_cast<std::uint32_t>(i);
      }
    }
  }

  std::string run() {
    for (step_ = 0; failure_.empty() && !is_over(); ++step_) {
      if (step_ == kStuck) return "messages wait for ever" + state();
      if (kills_left_ > 0 && below(100) == 0) kill();
      go_on(*pes_[static_cast<std::size_t>(below(npes()))]);
    }
    return failure_;
  }

  int npes() const { return world_.size(); }
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  Pe& at(int pe) { return *pes_[static_cast<std::size_t>(pe)]; }
  nic::Nic& nic(const Pe& pe) { return world_[pe.number].nic(); }
  void fail(const Pe& pe, const std::string& what) {
    if (failure_.empty())
      failure_ = "step " + std::to_string(step_) + ", PE " + std::to_string(pe.number) + ": " + what;
  }

  // A callback: it takes a few steps, and sends on what has hops left.
  bool call(Pe& pe, const std::uint64_t* data, std::uint32_t bytes, int from) {
    Head head;
    std::memcpy(&head, data, sizeof head);
    if (!pe.in_callback) {
      if (!is_right(pe, data, bytes, from, head)) return true;
      pe.in_callback = true;
      pe.callback_steps = below(4);
      if (head.hops > 0) begin_send(pe, pe.threads[1], head.hops - 1);
      return false;
    }
    if (pe.threads[1].send) {
      play(pe, pe.threads[1]);
      return false;
    }
    if (--pe.callback_steps > 0) return false;
    pe.in_callback = false;
    return true;
  }

 private:
  bool is_right(Pe& pe, const std::uint64_t* data, std::uint32_t bytes, int from, const Head& head) {
    if (bytes != head.words * 8 || head.sender / 2 != static_cast<std::uint64_t>(from))
      return fail(pe, "a message is not whole"), false;
    for (std::uint64_t i = sizeof head / 8; i < head.words; ++i)
      if (data[i] != filling(head, i)) return fail(pe, "a message holds other bytes"), false;
    std::uint64_t& next = pe.heard[head.sender];
    if (head.serial != next)
      return fail(pe, "message " + std::to_string(head.serial) + " of thread " + std::to_string(head.sender) +
                          " came for " + std::to_string(next)),
             false;
    ++next;
    return true;
  }
  static std::uint64_t filling(const Head& head, std::uint64_t i) {
    return head.sender << 48 | head.serial << 16 | i;
  }

  void begin_send(Pe& pe, Thread& thread, std::uint64_t hops) {
    const auto side = static_cast<std::uint64_t>(&thread - pe.threads.data());
    thread.to = below(npes());
    Head head{.sender = 2 * static_cast<std::uint64_t>(pe.number) + side,
              .serial = thread.sent[thread.to],
              .hops = hops,
              .words = sizeof(Head) / 8 + static_cast<std::uint64_t>(below(kMostWords - sizeof(Head) / 8))};
    thread.words.resize(head.words);
    std::memcpy(thread.words.data(), &head, sizeof head);
    for (std::uint64_t i = sizeof head / 8; i < head.words; ++i) thread.words[i] = filling(head, i);
    thread.sender.reset(new Sender{*this, thread});
    thread.send.emplace(*thread.sender, thread.to);
  }

  // One step of a send, with what the library does when it is to wait.
  void play(Pe& pe, Thread& thread) {
    const Step step = thread.send->step();
    if (step == Step::again) return;
    if (step == Step::wait) {
      if (pe.in_callback && &thread == &pe.threads[1])
        pe.receive->set_aside();
      else if (!pe.has_thread && pe.attached)
        (void)pe.receive->step();
      return;
    }
    const Errc outcome = thread.send->outcome();
    thread.send.reset();
    if (step == Step::sent) {
      ++thread.sent[thread.to];
      ++at(thread.to).given;
      // What is in memory now may change: the source is free.
      std::fill(thread.words.begin(), thread.words.end(), ~0ull);
    } else if (at(thread.to).alive) {
      fail(pe, std::string("a message to a PE that lives fails: ") + std::string(errc_name(outcome)));
    } else if (outcome != Errc::unreachable) {
      fail(pe, std::string("a message to a dead PE fails by ") + std::string(errc_name(outcome)));
    }
  }

  void attach(Pe& pe) {
    pe.slots.resize((depth_ + 1) * kMostWords);
    pe.arrivals = nic(pe).create_queue(static_cast<std::uint32_t>(2 * depth_), 0).value();
    pe.key = nic(pe)
                 .register_region(world_[pe.number].port(), reinterpret_cast<std::uint64_t>(pe.slots.data()),
                                  pe.slots.size() * 8, 0, nullptr)
                 .value();
    pe.channel = nic(pe).channels().open(world_[pe.number].port(), pe.arrivals).value();
    pe.receive.emplace(pe, reinterpret_cast<std::byte*>(pe.slots.data() + depth_ * kMostWords));
    for (std::size_t i = 0; i < depth_; ++i)
      pe.post(reinterpret_cast<std::byte*>(pe.slots.data() + i * kMostWords));
    pe.name = name_word(*pe.channel);
    pe.attached = true;
  }

  void go_on(Pe& pe) {
    if (!pe.alive) return;
    if (!pe.attached) {
      if (below(10) == 0) attach(pe);
      return;
    }
    const int what = below(10);
    if (what < 3) return void(nic(pe).serve());
    // A thread of its own runs the callbacks; else the PE's own thread does, and waits for their ends.
    if (pe.has_thread ? what < 7 : pe.in_callback) return void(pe.receive->step());
    Thread& own = pe.threads[0];
    if (own.send) return play(pe, own);
    if (pe.wanted > 0 && below(2) != 0) {
      --pe.wanted;
      return begin_send(pe, own, static_cast<std::uint64_t>(below(4)));
    }
    if (!pe.has_thread) (void)pe.receive->step();
  }

  // In the middle of a send to another one, perhaps.
  void kill() {
    Pe& pe = at(below(npes()));
    if (!pe.alive) return;
    --kills_left_;
    pe.alive = false;
    Pe& other = at(below(npes()));
    if (world_.path() == Path::direct && other.alive && other.attached) claim(other, pe);
    world_.kill(pe.number);
  }
  void claim(Pe& owner, const Pe& dead) {
    auto& channel = nic::channels_of(nic(owner).view()).channels[owner.channel->index];
    for (nic::ReceiveBuffer& buffer : channel.buffers) {
      const std::uint64_t word = buffer.word.load();
      if (nic::post_word::state(word) != nic::PostState::pending) continue;
      buffer.word.store(nic::post_word::claimed(word, static_cast<wire::ProcessSlot>(dead.number),
                                                world_[dead.number].name().generation));
      return;
    }
  }

  std::string state() {
    std::string all;
    for (const auto& pe : pes_) {
      std::uint64_t heard = 0;
      for (const auto& [sender, count] : pe->heard) heard += count;
      all += "; PE " + std::to_string(pe->number) + (pe->alive ? "" : " dead") + " wants " +
             std::to_string(pe->wanted) + (pe->in_callback ? " in callback" : "") +
             (pe->threads[0].send ? " sends to " + std::to_string(pe->threads[0].to) : "") +
             (pe->threads[1].send ? " callback sends to " + std::to_string(pe->threads[1].to) : "") +
             " heard " + std::to_string(heard) + " of " + std::to_string(pe->given);
    }
    return all;
  }
  // Nothing is to be sent, and each living PE has heard what the living were told is sent.
  bool is_over() {
    for (const auto& pe : pes_) {
      if (!pe->alive) continue;
      if (!pe->attached || pe->wanted > 0 || pe->in_callback) return false;
      for (const Thread& thread : pe->threads)
        if (thread.send) return false;
    }
    for (const auto& pe : pes_) {
      if (!pe->alive) continue;
      std::uint64_t heard = 0;
      for (const auto& [sender, count] : pe->heard) heard += count;
      // What a dead PE had under way may have come.
      if (heard < pe->given) return false;
    }
    return true;
  }

  std::mt19937_64 random_;
  nic::box::World world_;
  std::vector<std::unique_ptr<Pe>> pes_;
  std::size_t depth_ = 1;
  int kills_left_ = 0;
  int step_ = 0;
  std::string failure_;
};

std::optional<std::uint64_t> Sender::name(int pe) {
  if (!world.at(pe).alive) return std::nullopt;
  return world.at(pe).name;
}

bool Sender::alive(int pe) const { return world.at(pe).alive; }

Errc Sender::start(int pe, nic::MemKey channel) {
  channel.process = static_cast<std::uint16_t>(pe);
  nic::Request request;
  request.op = nic::Op::send;
  request.flags = nic::kGlobalEvent | nic::kInOrder;
  request.local_address = reinterpret_cast<std::uint64_t>(thread.words.data());
  request.length = thread.words.size() * 8;
  request.remote = channel;
  return thread.completions.start(*thread.endpoints[static_cast<std::size_t>(pe)], request, thread.tracker);
}

std::optional<Errc> Sender::ended() {
  const Errc ended = thread.completions.test(thread.tracker);
  return ended == Errc::not_done ? std::nullopt : std::optional(ended);
}

std::optional<Message> Pe::take() {
  nic::Event event;
  while (world->nic(*this).poll(*arrivals, &event) == Errc::ok) {
    const auto came = world->nic(*this).channels().take(event);
    if (came.ok())
      return Message{static_cast<std::byte*>(came.value().context),
                     static_cast<std::uint32_t>(came.value().bytes),
                     static_cast<int>(came.value().remote_event_data)};
  }
  return std::nullopt;
}

bool Pe::call(void* data, std::uint32_t bytes, int from) {
  return world->call(*this, static_cast<const std::uint64_t*>(data), bytes, from);
}

void Pe::post(std::byte* slot) {
  const Errc posted = world->nic(*this).channels().post(*channel, key, reinterpret_cast<std::uint64_t>(slot),
                                                        kMostWords * 8, slot);
  if (posted != Errc::ok) world->fail(*this, "a slot is not taken back");
}

class QueueWorlds : public ::testing::TestWithParam<Path> {};

INSTANTIATE_TEST_SUITE_P(Paths, QueueWorlds, ::testing::Values(Path::direct, Path::frame),
                         [](const auto& info) { return info.param == Path::direct ? "Direct" : "Frame"; });

TEST_P(QueueWorlds, EachMessageIsHeardOnceInOrderAndFullQueuesDoNotWaitForEachOther) {
  nic::box::for_every_seed(150, 100'000,
                           [](std::uint64_t seed) { return QueueWorld(seed, GetParam(), false).run(); });
}

TEST_P(QueueWorlds, WhateverPeDiesTheOthersHearWhatWasSent) {
  nic::box::for_every_seed(150, 100'000,
                           [](std::uint64_t seed) { return QueueWorld(seed, GetParam(), true).run(); });
}

}  // namespace
}  // namespace orrery::dmapp::message
