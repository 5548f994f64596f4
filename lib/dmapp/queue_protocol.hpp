// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/message/channel.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

// Messages between PEs: a sender looks at the word that names the channel of a PE's queue, and sends until
// a slot of it is free; the PE calls back for each message and gives the slot back. It does one thing at
// each step: what others do between the steps is up to whatever calls step(), a test in a box too.
namespace orrery::dmapp::message {

// The name of a queue in a PE's own part (inside.hpp): 63 there is one | 31..16 generation | 15..0 index.
inline constexpr std::uint64_t kThere = std::uint64_t{1} << 63;
constexpr std::uint64_t name_word(const nic::ChannelName& name) {
  return kThere | std::uint64_t{name.generation} << 16 | name.index;
}

enum class Step : std::uint8_t {
  again,   // call step()
  wait,    // the same, after this PE's own messages
  sent,    // the source may be used again
  failed,  // outcome() says why
};

// One message. P, the PE that sends, has
//
//   std::optional<std::uint64_t> name(pe)    the word of the PE's part; none: it is not reached
//   void watch(pe)                           its death will be noticed
//   bool alive(pe)
//   Errc start(pe, nic::MemKey channel)      of the send, without the PE's process slot in the key
//   std::optional<Errc> ended()              how it ended; none: it is under way
//
// Threads: one for each object.
template <typename P>
class Send {
 public:
  Send(P& port, int pe) : port_(port), pe_(pe) {}

  Step step() {
    switch (at_) {
      case At::look: {
        const std::optional<std::uint64_t> word = port_.name(pe_);
        if (!word) return fail(Errc::unreachable);
        if ((*word & kThere) != 0) {
          channel_.index = static_cast<std::uint16_t>(*word);
          channel_.generation = static_cast<std::uint16_t>(*word >> 16);
          at_ = At::start;
          return Step::again;
        }
        if (!watched_) port_.watch(pe_);
        watched_ = true;
        return port_.alive(pe_) ? Step::wait : fail(Errc::unreachable);
      }
      case At::start: {
        const Errc started = port_.start(pe_, channel_);
        if (started != Errc::ok) return is_full(started) ? Step::wait : fail(started);
        at_ = At::end;
        return Step::again;
      }
      case At::end:
        break;
    }
    const std::optional<Errc> ended = port_.ended();
    if (!ended) return Step::wait;
    if (*ended == Errc::ok) return Step::sent;
    at_ = At::start;
    return is_full(*ended) ? Step::wait : fail(*ended);
  }
  Errc outcome() const { return outcome_; }

 private:
  enum class At : std::uint8_t { look, start, end };
  // No slot is free, or the way to it is not there yet.
  static bool is_full(Errc ended) { return ended == Errc::no_resource || ended == Errc::not_done; }
  Step fail(Errc why) {
    outcome_ = why;
    return Step::failed;
  }

  P& port_;
  const int pe_;
  At at_ = At::look;
  bool watched_ = false;
  nic::MemKey channel_;
  Errc outcome_ = Errc::ok;
};

// What came. `slot` is null when the bytes lie elsewhere.
struct Message {
  std::byte* slot = nullptr;
  std::uint32_t bytes = 0;
  int pe = 0;
};

// The messages to a PE, one after the other. P, its queue, has
//
//   std::optional<Message> take()             the next one of the channel
//   bool call(void* data, bytes, pe)          false: the callback is not at its end, call again
//   void post(std::byte* slot)                the slot is free for a sender
//
// Threads: one at a time; set_aside() by the one that is in call().
template <typename P>
class Receive {
 public:
  // `spare`: one slot more than senders find free: the callback's message is in one, and a callback may
  // send to its own PE.
  Receive(P& port, std::byte* spare) : port_(port), spare_(spare) {}

  // False: nothing is there.
  bool step() {
    if (done_) {
      end();
      return true;
    }
    if (!now_ && !begin()) return false;
    std::byte* const data = now_->slot != nullptr ? now_->slot : aside_.front().second.data();
    done_ = port_.call(data, now_->bytes, now_->pe);
    return true;
  }
  // For a callback that waits for another PE's queue: this PE's slots are free again although no callback
  // runs for what is in them, so that two PEs, each with a callback that sends, do not wait for each other.
  void set_aside() {
    while (const std::optional<Message> came = port_.take()) {
      aside_.emplace_back(*came, std::vector<std::byte>(came->slot, came->slot + came->bytes));
      port_.post(came->slot);
    }
  }

 private:
  bool begin() {
    if (!aside_.empty()) {
      now_ = aside_.front().first;
      now_->slot = nullptr;
    } else {
      now_ = port_.take();
      if (now_) port_.post(spare_);
    }
    return now_.has_value();
  }
  void end() {
    if (now_->slot != nullptr) {
      spare_ = now_->slot;
    } else {
      aside_.pop_front();
    }
    now_.reset();
    done_ = false;
  }

  P& port_;
  std::byte* spare_;  // unless now_ has it
  std::optional<Message> now_;
  bool done_ = false;                                             // the callback of it
  std::deque<std::pair<Message, std::vector<std::byte>>> aside_;  // in order; older than what the slots have
};

}  // namespace orrery::dmapp::message
