// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/wait.hpp"
#include "emu/job/job.hpp"
#include "emu/nic/host/runtime.hpp"
#include "lib/cci/endpoint.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

// Under a clock: a message or RMA is priced by the machine when it is posted, and lies in the peer's memory
// at the time that the machine gives. A message is its own event there: its line is one store. The
// initiator's process does all of it. The handshake travels by sockets and takes no time; a frame that was
// sent lets every PE look again. No thread of the library acts, and nothing waits with the endpoint's lock.
namespace orrery::cci {

// A message or RMA on its way. Ends itself after both of its points in time.
class Outstanding {
 public:
  Outstanding(Endpoint& endpoint, Connection* connection, Op* op)
      : endpoint_(endpoint),
        connection_(connection),
        slot_(connection->slot),
        generation_(connection->generation),
        place_(connection->clock_place),
        op_(op) {
    if (op->kind == OpKind::message) bytes_.swap(op->copy);
  }

  void begin(const clock::Times& times) {
    clock::Clock& clock = *endpoint_.clock_;
    clock.schedule_there(times.data_at, &arrival_, place_);
    clock.schedule(times.local_event_at, &end_, clock::Concerns::itself);
  }

 private:
  struct Step final : clock::Task {
    Step(Outstanding& of, void (Outstanding::*what)()) : flight(of), step(what) {}
    void run() override {
      Outstanding& all = flight;
      (all.*step)();
      if (--all.left_ == 0) delete &all;
    }
    Outstanding& flight;
    void (Outstanding::*step)();
  };

  bool lives() const {
    return slot_ < endpoint_.slots_.size() && endpoint_.slots_[slot_] == connection_ &&
           connection_->generation == generation_ && connection_->state == ConnectionState::open;
  }

  void arrive() {
    {
      const std::lock_guard lock(endpoint_.lock_);
      if (!lives()) {
        status_ = CCI_ERR_DISCONNECTED;
        return;
      }
      const iovec piece{bytes_.data(), bytes_.size()};
      if (op_ != nullptr && op_->kind != OpKind::message) {
        connection_->queue.push(op_);
        op_ = nullptr;
        endpoint_.pump(connection_);
        if (connection_->queue.head != nullptr) endpoint_.block(connection_);
      } else if (connection_->queue.head != nullptr ||
                 endpoint_.put_message(connection_, &piece, 1, static_cast<std::uint32_t>(bytes_.size())) !=
                     Errc::ok) {
        // It waits for room, in its order; an unreliable one is lost.
        if (is_reliable(*connection_)) {
          op_->copy.swap(bytes_);
          op_->message = op_->copy.data();
          connection_->queue.push(op_);
          op_ = nullptr;
          endpoint_.block(connection_);
        }
      }
    }
    endpoint_.clock_->touch(place_);
  }

  void end() {
    {
      const std::lock_guard lock(endpoint_.lock_);
      --endpoint_.flying_;
      if (Op* const op = std::exchange(op_, nullptr); op != nullptr) {
        const bool known =
            slot_ < endpoint_.slots_.size() && endpoint_.slots_[slot_] == connection_ && connection_->known;
        if (known || (op->flags & CCI_FLAG_BLOCKING) != 0) {
          endpoint_.complete(op, status_);
        } else {
          --endpoint_.sends_out_;
          delete op;
        }
      }
    }
    endpoint_.clock_->touch(endpoint_.place_);
  }

  Endpoint& endpoint_;
  Connection* const connection_;
  const std::uint32_t slot_;
  const std::uint32_t generation_;
  const std::uint32_t place_;
  Op* op_;  // null: it is in the connection's queue, or ended
  std::vector<std::byte> bytes_;
  cci_status status_ = CCI_SUCCESS;
  int left_ = 2;
  Step arrival_{*this, &Outstanding::arrive};
  Step end_{*this, &Outstanding::end};
};

// A look at an endpoint's limits in virtual time, which passes up to it where the program only waits.
class Alarm final : public clock::Task {
 public:
  explicit Alarm(std::shared_ptr<AlarmLine> line) : line_(std::move(line)) {}
  void begin(clock::Clock& clock, std::int64_t at_ns) {
    at_ns_ = at_ns;
    clock.schedule(Picos{at_ns * 1000}, this, clock::Concerns::itself);
  }

  void run() override {
    clock::Clock* clock = nullptr;
    std::uint32_t place = 0;
    std::int64_t next = 0;
    {
      const std::lock_guard alive(line_->mu);
      if (Endpoint* const endpoint = line_->endpoint; endpoint != nullptr) {
        const std::lock_guard lock(endpoint->lock_);
        clock = endpoint->clock_;
        place = endpoint->place_;
        if (endpoint->alarm_ns_ == at_ns_) {  // else there is one before it
          next = endpoint->keep_clock_time(std::max(at_ns_, clock->now().count() / 1000));
          endpoint->alarm_ns_ = next;
        }
      }
    }
    if (clock != nullptr) clock->touch(place);
    if (next == 0) {
      delete this;
    } else {
      begin(*clock, next);
    }
  }

 private:
  const std::shared_ptr<AlarmLine> line_;
  std::int64_t at_ns_ = 0;
};

Status Endpoint::join_clock() {
  const auto clock = nic::Runtime::clock_of_process();
  if (!clock.ok()) return clock.code();
  if (clock.value() == nullptr) return {};
  const auto job = job::Job::of_process();
  if (!job.ok()) return job.code();
  place_ = job.value()->self().index;
  place_generation_ = job.value()->self().generation;
  clock_ = clock.value();
  alarm_line_->endpoint = this;
  return {};
}

// Whether the peer is a PE of this job, by the place that it says.
std::uint32_t Endpoint::place_of_peer(const Hello& theirs) const {
  if (clock_ == nullptr || theirs.place == 0) return kNoPlace;  // without a clock there need be no job
  const auto job = job::Job::of_process();
  if (!job.ok()) return kNoPlace;
  const std::uint32_t place = theirs.place - 1;
  if (place == place_) return theirs.place_generation == place_generation_ ? place : kNoPlace;
  for (const auto& process : job.value()->directory().live_processes()) {
    if (process.index == place && process.generation == theirs.place_generation) return place;
  }
  return kNoPlace;
}

bool Endpoint::flies(const Connection& connection) const {
  return clock_ != nullptr && connection.shared && connection.clock_place != kNoPlace;
}

// Whether the peer is gone, which no thread of the library looks after. REQUIRES: lock_ is held.
int Endpoint::look_at_peer(Connection* connection) {
  // Its end stands behind what it sent.
  do {
    connection->heard = false;
    read_socket(connection);
  } while (connection->heard && connection->state == ConnectionState::open);
  return connection->state == ConnectionState::open ? int{CCI_SUCCESS} : refusal(*connection);
}

// What a call does is seen by others from the time of the call on.
void Endpoint::take_turn() {
  if (clock_ == nullptr) return;
  clock_->enter();
  clock_->leave();
}

// A socket was written to, or room was made: the others look again.
void Endpoint::tell_others() {
  if (clock_ == nullptr || !stirred_.exchange(false)) return;
  clock_->enter();
  clock_->touch_all();
  clock_->leave();
}

// Ends the operations whose time in virtual time is over. Returns when it is to be called next, 0: no more.
// REQUIRES: lock_ is held.
std::int64_t Endpoint::keep_clock_time(std::int64_t now) {
  clock_limits_.advance(now, [this, now](Timer& timer) {
    auto& limit = static_cast<Limit&>(timer);
    if (!expire(static_cast<Op*>(limit.object))) clock_limits_.arm(limit, now + TimerWheel::kTickNs);
  });
  const auto next = clock_limits_.next_ns();
  return next ? std::max(*next, now + 1) : 0;
}

// Gives the operation so much of virtual time. REQUIRES: between the clock's enter() and leave().
void Endpoint::limit_in_time(Op* op, std::int64_t from_now_ns) {
  const std::int64_t at = clock_->now().count() / 1000 + from_now_ns;
  {
    const std::lock_guard lock(lock_);
    clock_limits_.arm(op->limit, at);
    if (alarm_ns_ != 0 && alarm_ns_ <= at) return;
    alarm_ns_ = at;
  }
  (new Alarm(alarm_line_))->begin(*clock_, at);
}

// REQUIRES: lock_ is not held; the operation counts as a send buffer.
void Endpoint::fly(Connection* connection, Op* op) {
  clock::Operation operation;
  operation.target = connection->clock_place;
  operation.bytes = op->kind == OpKind::message ? op->message_bytes : op->length;
  operation.op = op->kind == OpKind::read    ? model::Op::bte_get
                 : op->kind == OpKind::write ? model::Op::bte_put
                 : is_reliable(*connection)  ? model::Op::send_reliable
                                             : model::Op::send;
  auto* const flight = new Outstanding(*this, connection, op);
  {
    const std::lock_guard lock(lock_);
    ++flying_;
  }
  clock_->enter();
  if (connection->send_timeout != 0 && clock_->is_virtual())
    limit_in_time(op, std::int64_t{connection->send_timeout} * 1000);
  clock::Times times = clock_->start(operation);
  if (op->kind == OpKind::read) times.data_at = std::max(times.data_at, times.local_event_at);
  // Behind everything that was posted before it.
  times.data_at = connection->arrives_until = std::max(times.data_at, connection->arrives_until);
  if (is_reliable(*connection)) times.local_event_at = std::max(times.local_event_at, times.data_at);
  flight->begin(times);
  clock_->leave();
}

int Endpoint::get_event_timed(Event** event) {
  bool is_full = false;
  *event = nullptr;
  for (int look = 0; look < 2; ++look) {
    if (look == 1) clock_->idle(this);
    {
      const std::lock_guard lock(lock_);
      ++polls_;
      keep_time(monotonic_ns());
      redial();
      if (*event = next_event(); *event == nullptr) {
        progress_network(true);
        *event = events_.pop();
      }
      if (handle_.valid()) settle(*event != nullptr);
      is_full = receives_out_ >= receive_limit_;
    }
    tell_others();
    if (*event == nullptr) continue;
    if (look == 1) clock_->found();
    return CCI_SUCCESS;
  }
  return is_full ? CCI_ENOBUFS : CCI_EAGAIN;
}

// Waits for an operation that blocks. REQUIRES: lock_ is held; it is left meanwhile.
void Endpoint::wait_timed(const Op* op) {
  while (!op->done) {
    lock_.unlock();
    tell_others();
    clock_->idle(op);
    lock_.lock();
    ++polls_;
    if (!blocked_.empty()) retry_blocked();
    if (!op->done) progress_network(true);
  }
  lock_.unlock();
  tell_others();
  lock_.lock();
}

}  // namespace orrery::cci
