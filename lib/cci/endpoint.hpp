// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/short_lock.hpp"
#include "emu/clock/clock.hpp"
#include "emu/memory/range.hpp"
#include "lib/cci/device.hpp"
#include "lib/cci/objects.hpp"
#include "lib/cci/uri.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include <netinet/in.h>
#include <pthread.h>
#include <sys/uio.h>

namespace orrery::cci {

// address.cpp
bool is_of_this_host(in_addr address);

class Endpoint;

// From the clock's tasks to an endpoint, which may be gone before their time.
struct AlarmLine {
  std::mutex mu;
  Endpoint* endpoint = nullptr;  // guarded by mu; null: none, or no more
};

// One endpoint: its segment, its sockets, its connections and events, and a thread that looks after the
// sockets when the client does not.
//   1. The interface's calls take lock_ themselves; the accessors take none.
//   2. Nothing waits under the lock but copies.
//   3. The client's polls move the sockets themselves. The thread takes over when no poll has come for
//      kAttendedMs (2 ms).
//   4. Without a clock the thread alone keeps the timers; under a clock the client's polls keep them too.
//   5. Handles of connections and events point into objects of the endpoint, and die with it.
class Endpoint {
 public:
  // Errors: no_memory, system; no_resource (the port or name is taken), invalid_param (`service`).
  static Result<std::unique_ptr<Endpoint>> create(const Device& device, const char* service,
                                                  bool with_handle);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  struct cci_endpoint shown {};  // first

  int handle() const { return handle_.get(); }
  const std::string& uri() const { return uri_; }
  const Device& device() const { return device_; }

  // ---- calls of the interface (each takes the lock) ----
  int connect(const Uri& uri, const void* data, std::uint32_t bytes, cci_conn_attribute attribute,
              void* context, const timeval* timeout);
  int decide(Event* event, bool accept, void* context);
  int disconnect(Connection* connection);
  int get_event(Event** event);
  int return_event(Event* event);
  int arm();
  int send(Connection* connection, const iovec* pieces, std::uint32_t count, std::uint64_t bytes,
           void* context, int flags);
  int register_memory(void* start, std::uint64_t length, int flags, cci_rma_handle_t** handle);
  int deregister_memory(const cci_rma_handle* handle);
  int rma(Connection* connection, const void* message, std::uint32_t message_bytes,
          const cci_rma_handle& local, std::uint64_t local_offset, const cci_rma_handle& remote,
          std::uint64_t remote_offset, std::uint64_t length, void* context, int flags);
  int set_option(Connection* connection, cci_opt_name name, std::uint32_t value);
  int get_option(Connection* connection, cci_opt_name name, std::uint32_t* value);

  // forked.cpp
  void lock_for_fork() { lock_.lock(); }
  void unlock_after_fork() { lock_.unlock(); }
  void abandon();

  // mapped.cpp, for mapping.cpp
  bool hold_off(memory::Range chunk);
  void set_mapped(memory::Range range, const std::function<bool(memory::Range)>& in_file);

 private:
  explicit Endpoint(const Device& device);
  friend class Outstanding;
  friend class Alarm;

  // endpoint.cpp: events and buffers
  Event* new_event();
  void free_event(Event* event);
  void raise(Event* event);
  void raise_send(Connection* connection, void* context, cci_status status);
  Event* next_event();
  void settle(bool got);
  bool has_something() const;
  void made_room();
  void ring_self();

  // operations.cpp: what waits
  int refusal(const Connection& connection) const;
  Op* new_op(Connection* connection, void* context, int flags);
  int post(Op* op, int flags);
  void wake_thread();
  void complete(Op* op, cci_status status);
  void pump(Connection* connection);
  void block(Connection* connection);
  void retry_blocked();
  void nudge_peers();
  void fail_all(Connection* connection, cci_status status);
  void set_limit(Limit& limit, std::int64_t from_now_ns);
  void keep_time(std::int64_t now);
  bool expire(Op* op);
  void look_whether_alive(Connection* connection, std::int64_t now);

  // shared.cpp: messages by shared memory
  Errc put_message(Connection* connection, const iovec* pieces, std::uint32_t count, std::uint32_t bytes);
  Event* take_shared();
  Event* take_line(Connection* connection);
  void take_ring(Connection* connection);
  void attend(Connection* connection);
  bool unattend(Connection* connection);
  void look_at_ready();
  bool line_is_there(const Connection& connection) const;
  Event* receive_event(Connection* connection, std::uint32_t bytes);
  void relay(Connection* from, const std::byte* message, std::uint32_t bytes);

  // stream.cpp: messages by the socket
  bool send_frame(Connection* connection, FrameKind kind, std::uint16_t flags, std::uint64_t a,
                  std::uint64_t b, std::uint64_t c, const iovec* pieces, std::uint32_t count,
                  const int* descriptors = nullptr);
  bool flush(Connection* connection);
  void read_socket(Connection* connection);
  void handle_bytes(Connection* connection, std::span<const std::byte> bytes);
  Errc handle_frame(Connection* connection, const FrameHeader& header, std::span<const std::byte> payload);
  Errc handle_message(Connection* connection, const FrameHeader& header, std::span<const std::byte> payload);
  void handle_ack(Connection* connection, std::uint64_t through);
  void owe_ack(Connection* connection);
  void flush_acks();
  void stall(Connection* connection);
  void retry_stalled();
  void set_interest(Connection* connection, std::uint32_t events);
  bool by_stream(const Connection& connection) const;
  static bool expects_file(const Connection& connection);

  // timed.cpp: under a clock
  Status join_clock();
  std::uint32_t place_of_peer(const Hello& theirs) const;
  bool flies(const Connection& connection) const;
  void take_turn();
  void tell_others();
  void fly(Connection* connection, Op* op);
  void limit_in_time(Op* op, std::int64_t from_now_ns);
  std::int64_t keep_clock_time(std::int64_t now);
  int get_event_timed(Event** event);
  void wait_timed(const Op* op);
  int look_at_peer(Connection* connection);
  void redial();

  // handshake.cpp
  int begin_connect(const Uri& uri, const void* data, std::uint32_t bytes, cci_conn_attribute attribute,
                    void* context, const timeval* timeout);
  int decide_now(Event* event, bool accept, void* context);
  Errc dial_here(Connection* connection, std::string_view meeting);
  Connection* new_connection();
  void dial(Connection* connection);
  void dial_address(Connection* connection);
  void dialled(Connection* connection);
  void greet(Connection* connection);
  void accept_all(int listener, bool local);
  Hello hello_of(const Connection& connection, bool shares, std::uint32_t data_bytes) const;
  Errc handle_connect(Connection* connection, std::span<const std::byte> payload);
  Errc handle_accept(Connection* connection, std::span<const std::byte> payload);
  Errc handle_ready(Connection* connection, bool shared);
  bool open_peer(Connection* connection);
  void establish(Connection* connection, bool shared);
  void connect_failed(Connection* connection, cci_status status);
  void lose(Connection* connection, bool take_rest = true);
  void release(Connection* connection);
  bool is_unsettled(const Connection& connection) const;

  // network.cpp
  Status listen(const char* service);
  void set_listening(bool on);
  void progress_network(bool all);
  void thread_main();
  static void* thread_entry(void* self);
  void watch(Connection* connection);
  void count_streams();

  // address.cpp
  void watch_address();
  void look_after_address();

  // rma.cpp
  const Registration* own_registration(const cci_rma_handle& handle, std::uint64_t offset,
                                       std::uint64_t length) const;
  std::byte* checked_target(std::uint64_t name, std::uint64_t offset, std::uint64_t length, bool write) const;
  Errc copy_directly(Connection* connection, Op* op);
  bool pump_rma(Connection* connection, Op* op);
  Errc handle_rma(Connection* connection, const FrameHeader& header, std::span<const std::byte> payload);
  int register_now(void* start, std::uint64_t length, int flags, bool in_file, cci_rma_handle_t** handle);
  int deregister_now(const cci_rma_handle* handle, memory::Range* range, bool* stalled);
  bool is_touched(std::uint32_t registration) const;
  bool wait_for_peers(std::uint32_t registration);
  bool end_registration(std::uint32_t index);
  void end_registrations();
  struct cci_rma_handle& handle_at(std::uint32_t index) const;

  // mapped.cpp
  struct MapWork {
    std::uint32_t slot;  // of the connection
    std::uint32_t generation;
    std::uint64_t name;  // of the registration
    UniqueFd file;       // or the peer's memory file
  };
  void ask_to_map(Connection* connection, std::uint64_t count, std::uint64_t name);
  Errc copy_mapped(Connection* connection, const Op& op, std::uint64_t target);
  Errc handle_mapping(Connection* connection, const FrameHeader& header);
  Connection* connection_of(const MapWork& work) const;
  void announce_move(memory::Range chunk, std::vector<std::uint32_t>* used);
  void do_map_work(std::vector<MapWork> all);

  const Device& device_;
  std::string uri_;
  ShortLock lock_;
  std::uint64_t nonce_ = 0;
  std::unique_ptr<Segment> segment_;
  UniqueFd doorbell_, net_, handle_, stop_;
  UniqueFd local_listener_, address_listener_;
  UniqueFd addresses_;   // the kernel tells of changes of this host's addresses
  bool failed_ = false;  // the device has lost its address, or this is a child of the endpoint's process
  TimerWheel limits_;
  Limit listen_again_{Limit::Of::listeners, this};  // armed: it does not listen
  pthread_t thread_{};
  bool has_thread_ = false;
  bool thread_sleeps_ = false;             // until something happens at its descriptors
  std::int64_t thread_until_ns_ = 0;       // or then; INT64_MAX: not by itself. 0: it is awake
  std::atomic<bool> thread_waits_{false};  // the thread wants the lock

  std::vector<std::unique_ptr<Event[]>> event_chunks_;
  List<Event> free_events_, events_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::uint32_t> generations_;
  std::uint32_t fresh_slots_ = 0;
  std::vector<Connection*> active_, blocked_, stalled_, owing_, dead_;
  std::unordered_map<std::uint64_t, std::weak_ptr<PeerSegment>> peers_;
  std::size_t peers_looked_at_ = 64;  // so many: those that are gone are taken out
  std::vector<std::unique_ptr<struct cci_rma_handle[]>> handles_;
  std::vector<std::uint32_t> free_registrations_;
  std::uint32_t fresh_registrations_ = 0;
  std::unique_ptr<std::byte[]> scratch_;
  Connection* hot_stream_ = nullptr;

  struct Redial {
    Connection* connection;
    std::string meeting;
  };
  clock::Clock* clock_ = nullptr;  // null: raw time
  std::uint32_t place_ = 0;        // of this process among the PEs
  std::uint32_t place_generation_ = 0;
  std::uint32_t flying_ = 0;    // messages and RMA on their way
  TimerWheel clock_limits_{0};  // of operations, in virtual time
  std::int64_t alarm_ns_ = 0;   // when the clock looks at them; 0: not
  std::shared_ptr<AlarmLine> alarm_line_ = std::make_shared<AlarmLine>();
  std::atomic<bool> stirred_{false};  // others are to look again
  std::vector<Redial> redials_;
  std::vector<MapWork> map_work_;  // for the thread

  std::uint32_t send_limit_ = kMaxReceiveBuffers;
  std::uint32_t receive_limit_ = kMaxReceiveBuffers;
  std::uint32_t send_timeout_ = 0;
  std::uint32_t keepalive_ = 0;
  std::uint32_t sends_out_ = 0;
  std::uint32_t receives_out_ = 0;
  std::uint32_t unsettled_ = 0;  // handshakes under way
  std::uint32_t streams_ = 0;    // connections by their sockets
  std::uint64_t refused_ = 0;    // connections of other users that were refused
  std::uint64_t polls_ = 0;
  std::uint32_t misses_ = 0;
  bool spinning_ = false;
  bool armed_ = false;
};

}  // namespace orrery::cci
