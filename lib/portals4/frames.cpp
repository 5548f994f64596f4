// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Messages to match units that cannot be mapped: on other hosts, or where memory cannot be attached to. The
// initiator's thread sends the steps of emu/nic/target/match_packets.hpp and waits for their answers; the
// target's polling or service thread applies its rules and moves the bytes.
#include "emu/nic/target/match_packets.hpp"
#include "lib/portals4/process.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace orrery::portals4 {

namespace {

using match::Step;
using match::StepAnswer;
using match::StepHead;

// Bytes of a message in one packet, so that the packet fits a lane, or the wire.
constexpr std::uint64_t kLaneChunk = 3072;
constexpr std::uint64_t kWireChunk = 16384;
constexpr std::size_t kWindow = 8;  // packets under way for one message

// Packets to one process, and their answers. Lives until all that it sent has been answered.
class Exchange final : public nic::Listener {
 public:
  Exchange(Process& process, nic::ProcessName to) : process_(process), to_(to) {}

  // Sends a step in `place`; its answer has `room` bytes behind StepAnswer.
  void send(std::size_t place, const std::vector<std::byte>& payload, std::uint64_t room) {
    Place& one = places_[place];
    one.answer.assign(sizeof(StepAnswer) + room, std::byte{0});
    one.status = Errc::unreachable;
    one.done.store(0, std::memory_order_relaxed);
    wire::PacketHeader header;
    header.verb = wire::Verb::match;
    header.domain = static_cast<std::uint16_t>(process_.domain());
    header.length = one.answer.size();
    const nic::Completion told{.value = static_cast<std::uint32_t>(place), .listener = this};
    for (;;) {
      nic::Nic& nic = process_.runtime().nic();
      const auto peer = nic.peers().connect(to_);
      const Errc sent =
          peer.ok() ? nic.transport().send_packet(*peer.value(), header, payload, told) : peer.code();
      if (sent == Errc::not_done) return;
      if (sent != Errc::no_resource) {
        one.status = sent;
        one.done.store(1, std::memory_order_relaxed);
        return;
      }
      nic.progress();
      yield_cpu();
    }
  }

  // Waits for the answer in `place`. Sleeps when it is long in coming.
  Errc wait(std::size_t place) {
    Place& one = places_[place];
    nic::Nic& nic = process_.runtime().nic();
    // Acquire: the answer's bytes.
    const auto done = [&] { return one.done.load(std::memory_order_acquire) != 0; };
    const auto look = [&] {
      if (!done()) nic.progress();
      return done();
    };
    if (!spin_then_yield(process_.runtime().wait_budget(), look)) {
      nic.attendant().hand_frames_back();
      while (!done()) futex_wait(one.done, 0, std::nullopt);
    }
    return one.status;
  }
  StepAnswer answer(std::size_t place) const {
    StepAnswer answer;
    std::memcpy(&answer, places_[place].answer.data(), sizeof answer);
    return answer;
  }
  // The bytes behind it, as many as it says and there is room for.
  std::span<const std::byte> bytes(std::size_t place) const {
    const std::span<const std::byte> all = std::span(places_[place].answer).subspan(sizeof(StepAnswer));
    return all.first(std::min<std::size_t>(all.size(), answer(place).bytes));
  }

  void ended(const nic::Completion& completion, const nic::Ending& ending) override {
    Place& one = places_[completion.value % kWindow];
    one.status = ending.status;
    if (ending.status == Errc::ok && ending.answer != nullptr)
      std::memcpy(one.answer.data(), ending.answer, one.answer.size());
    // Release: the answer. After it this object may be gone.
    FutexWord& word = one.done;
    word.store(1, std::memory_order_release);
    futex_wake(word, 1);
  }

 private:
  struct Place {
    FutexWord done{1};
    Errc status = Errc::ok;
    std::vector<std::byte> answer;
  };
  Process& process_;
  const nic::ProcessName to_;
  std::array<Place, kWindow> places_;
};

void put_head(std::vector<std::byte>& payload, const StepHead& head) {
  payload.resize(sizeof head);
  std::memcpy(payload.data(), &head, sizeof head);
}

Errc take_source(Peer& initiator, const match::Operation& op, std::uint64_t at, std::uint64_t bytes,
                 std::vector<std::byte>& payload) {
  std::vector<Range> here;
  if (!ranges_of(initiator, op.source.start, op.source.pieces, op.source_offset + at, bytes, &here))
    return Errc::bounds;
  const std::size_t begin = payload.size();
  payload.resize(begin + bytes);
  return read(initiator, here, payload.data() + begin);
}

Errc give_result(Peer& initiator, const match::Operation& op, std::uint64_t at,
                 std::span<const std::byte> bytes) {
  std::vector<Range> here;
  if (!ranges_of(initiator, op.result.start, op.result.pieces, op.result_offset + at, bytes.size(), &here))
    return Errc::bounds;
  return write(initiator, here, bytes.data());
}

// One message: its steps one after the other, its parts several at once.
class Sender {
 public:
  Sender(Peer& initiator, const match::Operation& op, Peer& target)
      : initiator_(initiator),
        op_(op),
        exchange_(Process::get(), target.name),
        chunk_(target.by_wire ? kWireChunk : kLaneChunk) {}

  Outcome run(const match::Arrival& arrival) {
    const bool leaves = op_.kind != match::OpKind::get;
    const bool returns = op_.kind != match::OpKind::put && op_.kind != match::OpKind::atomic;
    Outcome outcome;
    put_head(payload_, {.step = static_cast<std::uint8_t>(Step::open)});
    add_offer(arrival);
    const std::uint64_t first = leaves ? std::min(op_.length, chunk_) : 0;
    if (const Errc taken = take_source(initiator_, op_, 0, first, payload_); taken != Errc::ok) {
      outcome.fail = fail_of(taken);
      return outcome;
    }
    exchange_.send(0, payload_, returns ? std::min(op_.length, chunk_) : 0);
    if (exchange_.wait(0) != Errc::ok) return outcome;
    const StepAnswer answer = exchange_.answer(0);
    outcome.fail =
        answer.fail <= match::kSegv ? static_cast<match::Fail>(answer.fail) : match::kUndeliverable;
    outcome.offset = answer.offset;
    outcome.list = answer.list;
    outcome.no_ack = answer.no_ack != 0;
    const std::uint64_t moved = std::min(answer.moved, op_.length);
    Errc status = Errc::ok;
    const std::uint64_t came = std::min<std::uint64_t>(exchange_.bytes(0).size(), moved);
    if (outcome.fail == match::kDelivered && returns)
      status = give_result(initiator_, op_, 0, exchange_.bytes(0).first(came));
    if (answer.token != 0)
      status = go_on(answer.token, leaves ? first : moved, returns ? came : moved, moved, status);
    if (outcome.fail == match::kDelivered && status != Errc::ok) outcome.fail = fail_of(status);
    outcome.moved = outcome.fail == match::kDelivered ? moved : 0;
    return outcome;
  }

 private:
  void add_offer(const match::Arrival& arrival) {
    match::Offer offer;
    offer.match_bits = arrival.match_bits;
    offer.remote_offset = arrival.remote_offset;
    offer.length = arrival.length;
    offer.header_data = arrival.header_data;
    offer.initiator = arrival.initiator;
    offer.pid = op_.target.pid;
    offer.portal = arrival.portal;
    offer.uid = arrival.uid;
    offer.kind = static_cast<std::uint8_t>(op_.kind);
    offer.interface = arrival.interface;
    offer.operation = arrival.operation;
    offer.datatype = arrival.datatype;
    std::memcpy(offer.operand, op_.operand, sizeof offer.operand);
    const std::size_t begin = payload_.size();
    payload_.resize(begin + sizeof offer);
    std::memcpy(payload_.data() + begin, &offer, sizeof offer);
  }

  // The rest of an open message: what is still to be sent from `sent` on, and fetched from `came` on.
  Errc go_on(std::uint64_t token, std::uint64_t sent, std::uint64_t came, std::uint64_t moved, Errc status) {
    const bool atomic = op_.kind != match::OpKind::put && op_.kind != match::OpKind::get;
    if (status == Errc::ok && sent < moved) {
      status = parts(token, sent, moved, Step::put_part);
      if (status == Errc::ok && atomic) status = step({token, 0, static_cast<std::uint8_t>(Step::apply)});
    }
    if (status == Errc::ok && came < moved) status = parts(token, came, moved, Step::get_part);
    const Errc finished = step({.token = token,
                                .step = static_cast<std::uint8_t>(Step::finish),
                                .fail = static_cast<std::uint8_t>(fail_of(status))});
    return status != Errc::ok ? status : finished;
  }

  Errc step(const StepHead& head) {
    put_head(payload_, head);
    exchange_.send(0, payload_, 0);
    return exchange_.wait(0);
  }

  Errc parts(std::uint64_t token, std::uint64_t begin, std::uint64_t end, Step what) {
    Errc status = Errc::ok;
    std::array<std::uint64_t, kWindow> at{};
    const std::uint64_t count = (end - begin + chunk_ - 1) / chunk_;
    const auto collect = [&](std::uint64_t i) {
      const std::size_t place = i % kWindow;
      const Errc ended = exchange_.wait(place);
      if (status == Errc::ok) status = ended;
      if (status != Errc::ok || what != Step::get_part) return;
      const std::uint64_t wanted = std::min(chunk_, end - at[place]);
      const auto bytes = exchange_.bytes(place);
      status = bytes.size() < wanted ? Errc::corrupt
                                     : give_result(initiator_, op_, at[place], bytes.first(wanted));
    };
    std::uint64_t sent = 0;
    std::uint64_t collected = 0;
    for (; sent < count && status == Errc::ok; ++sent) {
      if (sent - collected == kWindow) collect(collected++);
      const std::size_t place = sent % kWindow;
      at[place] = begin + sent * chunk_;
      const std::uint64_t bytes = std::min(chunk_, end - at[place]);
      put_head(payload_, {.token = token, .offset = at[place], .step = static_cast<std::uint8_t>(what)});
      if (what == Step::put_part) {
        status = take_source(initiator_, op_, at[place], bytes, payload_);
        if (status != Errc::ok) break;
      }
      exchange_.send(place, payload_, what == Step::get_part ? bytes : 0);
    }
    while (collected < sent) collect(collected++);
    return status;
  }

  Peer& initiator_;
  const match::Operation& op_;
  Exchange exchange_;
  const std::uint64_t chunk_;
  std::vector<std::byte> payload_;
};

}  // namespace

Outcome perform_by_frame(Peer& initiator, const match::Operation& op, const match::Arrival& arrival,
                         Peer& target) {
  return Sender(initiator, op, target).run(arrival);
}

bool has_pid(nic::ProcessName process, std::uint32_t pid) {
  Exchange exchange(Process::get(), process);
  std::vector<std::byte> payload;
  put_head(payload, {.token = pid, .step = static_cast<std::uint8_t>(Step::who)});
  exchange.send(0, payload, 0);
  return exchange.wait(0) == Errc::ok;
}

}  // namespace orrery::portals4
