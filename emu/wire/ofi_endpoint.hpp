// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/wire/ofi_connections.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace orrery::wire {

// One send or receive that libfabric has. It must stay where it is, with its bytes, until sent() names it.
struct OfiOperation {
  alignas(16) std::byte context[64];  // libfabric's own
  bool is_receive = false;
};

// What an endpoint tells its owner, from inside poll().
class OfiEvents {
 public:
  // A message. The bytes live for the call.
  virtual void arrived(std::span<const std::byte> message) = 0;
  // libfabric is done with a send, whether it went out or not.
  virtual void sent(OfiOperation& operation) = 0;

 protected:
  ~OfiEvents() = default;
};

inline constexpr const char* kAutomatic = "auto";

struct OfiEndpointOptions {
  std::string provider;  // libfabric's name: "tcp;ofi_rxm", "net", "verbs;ofi_rxm", ...; or kAutomatic
  // "eth0", an address of ours "10.0.0.1", or its network "10.0.0.0/24"; empty: the first that is not a
  // loopback.
  std::string interface;
  std::uint32_t message_bytes = 0;  // longest message from a send buffer
  // Longest message of parts that lie anywhere, where the provider has such; 0: none.
  std::uint32_t gathered_bytes = 0;
  std::uint32_t receives = 0;  // receive buffers, at most; fewer when gathered messages are received
  std::uint32_t sends = 0;     // send buffers
  bool other_hosts = false;    // peers live on other hosts: a loopback interface does only when it is named
  OfiGreeter* greeter = nullptr;  // where the provider's connections are made by us; outlives the endpoint
};

// Sends messages to and receives them from any number of peers by libfabric, reliably, with its buffers.
// Over TCP each peer has a connection of its own (ofi_connections.hpp), which carries nothing before both
// ends have proved their names; other providers have an unconnected endpoint (FI_EP_RDM), whose
// connections, if any, are their own. The library is opened at run time: a job that stays on one host never
// loads it. One thread at a time, but for wait_fd(), which any thread may poll(2). Usage: auto ep =
// OfiEndpoint::open(options, &why); ep.value()->poll(events, 16);
class OfiEndpoint {
 public:
  // Opens provider and interface. unsupported when libfabric is not installed, or has no such provider or
  // interface; system when opening failed. Then `why` names the cause, and what to use instead. Waits up
  // to 3 s for an interface that leads to other hosts, and for an address that the kernel still examines.
  static Result<std::unique_ptr<OfiEndpoint>> open(const OfiEndpointOptions& options, std::string* why);
  // Names of the providers that could be opened here, best known first; empty without libfabric.
  static std::vector<std::string> usable_providers();

  ~OfiEndpoint();
  OfiEndpoint(const OfiEndpoint&) = delete;
  OfiEndpoint& operator=(const OfiEndpoint&) = delete;

  // Our address, for insert() at the peer.
  std::vector<std::byte> address() const;
  // Makes a peer's address usable; the number is for send(). corrupt when the provider does not take it.
  // The connection is made when the first message is sent.
  Result<std::uint64_t> insert(std::span<const std::byte> address);
  // The peer of this number is no more: its connection is closed.
  void forget(std::uint64_t peer);

  // Send buffer `i` below options.sends, message_bytes long.
  std::byte* send_buffer(std::uint32_t i) { return send_buffers_ + std::size_t{i} * options_.message_bytes; }
  // Sends `bytes`, which lie in a send buffer. not_done: the provider has no room, nothing happened, try
  // again after poll(). unreachable: the provider refused. ok: `operation` and the bytes are the provider's
  // until sent().
  Status send(std::uint64_t peer, std::span<const std::byte> bytes, OfiOperation& operation);

  // Longest message that inject() takes, 0 where the provider has no such thing.
  std::uint32_t longest_injected() const { return longest_injected_; }
  // As send(), but the provider takes a copy: the bytes, which lie anywhere, are the caller's again when this
  // returns, and nothing is reported.
  Status inject(std::uint64_t peer, std::span<const std::byte> bytes);

  // Longest message that send_parts() takes, 0 where the provider has no use for it: it would copy them, they
  // would have to be registered, or they would overtake each other.
  std::uint32_t longest_gathered() const { return longest_gathered_; }
  // As send(), for a message of parts, at most kMostParts, which lie anywhere in our memory.
  static constexpr std::size_t kMostParts = 3;
  Status send_parts(std::uint64_t peer, std::span<const std::span<const std::byte>> parts,
                    OfiOperation& operation);

  // Whether a connection of ours is being made, or may have ended: then each poll() looks for news of it.
  bool is_connecting() const { return connections_ && connections_->is_due(); }

  // Moves data and reports up to about `limit` events. Returns how many. Never blocks.
  int poll(OfiEvents& events, int limit);

  // Becomes readable when poll() has something to do; -1 when the provider has no such thing.
  int wait_fd() const { return wait_fd_; }
  // Whether one may sleep on wait_fd() now, until wake_at_ns() at the latest: false when poll() must be
  // called first.
  bool may_sleep();
  // When connections are to be looked for that wait_fd() does not tell of; 0: it tells of all.
  std::int64_t wake_at_ns() const { return wake_at_ns_; }

  const std::string& provider() const { return provider_; }
  // Nothing but this host is reached from here.
  bool on_loopback() const { return on_loopback_; }
  // What a peer's number stands for, to be read: "10.0.0.2:40123"; empty where the provider has no text for
  // it.
  std::string text_of(std::uint64_t peer) const;
  // Events that the provider reported as failed.
  std::uint64_t failures() const { return failures_; }
  // Connections whose other end did not prove its name.
  std::uint64_t strangers() const { return connections_ ? connections_->refused() : 0; }

 private:
  struct Fabric;
  struct Receive;
  explicit OfiEndpoint(const OfiEndpointOptions& options);
  static Result<std::unique_ptr<OfiEndpoint>> open(const OfiEndpointOptions& options,
                                                   std::int64_t deadline_ns, std::string* why);
  Status start(std::int64_t deadline_ns, std::string* why);
  Status choose(bool last, std::string* why);
  Status set_up(std::string* why);
  template <typename Failed>
  Status set_up_unconnected(const Failed& failed);
  fid_ep* sender(std::uint64_t peer) const;
  Status sent_or_not(std::int64_t result);
  void post(Receive& receive);
  int read_error(OfiEvents& events);

  const OfiEndpointOptions options_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<OfiConnections> connections_;  // null: fabric_'s endpoint makes its own
  std::uint32_t polls_ = 0;
  std::string provider_;
  bool on_loopback_ = false;
  std::uint32_t longest_gathered_ = 0;
  std::uint32_t longest_injected_ = 0;
  std::uint32_t receive_bytes_ = 0;  // of each receive buffer
  std::byte* memory_ = nullptr;
  std::size_t memory_bytes_ = 0;
  std::byte* send_buffers_ = nullptr;
  std::vector<Receive> receives_;
  std::vector<Receive*> unposted_;
  Receive* last_ = nullptr;  // what came last, not posted again yet
  int wait_fd_ = -1;
  std::int64_t wake_at_ns_ = 0;
  std::uint64_t failures_ = 0;
};

}  // namespace orrery::wire
