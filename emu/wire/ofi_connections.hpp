// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/wire/uninvited.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

struct fid;
struct fid_cq;
struct fid_domain;
struct fid_ep;
struct fid_eq;
struct fid_fabric;
struct fid_pep;
struct fi_info;

namespace orrery::wire {

// Names the peer of a connection, and proves which process we are. Called from inside OfiEndpoint's calls.
class OfiGreeter {
 public:
  struct Greeted {
    std::uint64_t peer = 0;    // number of the process that greets
    bool we_go_first = false;  // of two connections that cross, ours is the one that stays
    std::vector<std::byte> answer;
  };
  // What we say to `peer` first.
  virtual std::vector<std::byte> hello_to(std::uint64_t peer) = 0;
  // Another process connects and says this; nothing: a stranger, the connection is refused.
  virtual std::optional<Greeted> greeted(std::span<const std::byte> hello) = 0;
  // What `peer` says to our last hello; false: it is another process, the connection is given up.
  virtual bool answered(std::uint64_t peer, std::span<const std::byte> answer) = 0;

 protected:
  ~OfiGreeter() = default;
};

// libfabric's objects that connections are made of; all outlive OfiConnections.
struct OfiObjects {
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_cq* cq = nullptr;
  fi_info* info = nullptr;  // of a connected endpoint (FI_EP_MSG)
  void (*free_info)(fi_info*) = nullptr;
};

// Connections of one process with others over connected endpoints, one for each peer, with one set of
// receive buffers for all. A connection carries nothing and takes no buffer before both ends have proved by
// a hello and its answer that they have the job's secret; what does not is closed. Without a greeter every
// connection is accepted, and only received from. One thread at a time, but for wait_fd().
class OfiConnections {
 public:
  // Listens. `why`: on error, what failed.
  static Result<std::unique_ptr<OfiConnections>> open(const OfiObjects& objects, OfiGreeter* greeter,
                                                      std::string* why);
  ~OfiConnections();
  OfiConnections(const OfiConnections&) = delete;
  OfiConnections& operator=(const OfiConnections&) = delete;

  // Where we listen, for insert() at the peer.
  std::vector<std::byte> address() const;
  // A number for the process that listens there.
  std::uint64_t insert(std::span<const std::byte> address);
  // Closes its connection; none is made or accepted any more.
  void forget(std::uint64_t peer);
  std::span<const std::byte> address_of(std::uint64_t peer) const { return links_[peer]->address; }

  // What receives are posted to.
  fid_ep* receives() const { return receives_; }
  // The endpoint that sends to `peer`; null: not connected yet, and it has been begun.
  fid_ep* ready(std::uint64_t peer);
  // Sending failed: what became of the connection is to be looked at.
  void look() { must_look_ = true; }

  // Whether progress() is wanted soon.
  bool is_due() const { return pending_ != 0 || must_look_; }
  // Whether progress() has had its share of the time: a flood of connections takes a small one, and waits in
  // the kernel for the rest. Never while is_due().
  bool rests() const;
  std::int64_t rests_until_ns() const { return rests_until_ns_; }
  // Makes and takes connections. Returns how much happened. Never blocks.
  int progress();

  // wait_fd() says nothing of connections until the next progress().
  void hush();
  int wait_fd() const { return wait_fd_; }
  fid_eq* events() const { return eq_; }
  // Connections that were refused or ended because the other end did not prove its name.
  std::uint64_t refused() const { return refused_; }

 private:
  enum class State : std::uint8_t { idle, greeting, accepting, connected };
  struct Link {
    std::vector<std::byte> address;
    fid_ep* ep = nullptr;
    State state = State::idle;
    std::uint32_t failures = 0;  // since it was last connected
    std::int64_t at_ns = 0;      // greeting, accepting: when it is given up; idle: when it may begin
    bool forgotten = false;
  };

  OfiConnections(const OfiObjects& objects, OfiGreeter* greeter) : o_(objects), greeter_(greeter) {}
  Status listen(std::string* why);
  fid_ep* endpoint(fi_info* info);
  void begin(std::uint64_t peer);
  void end(Link& link, bool failed);
  void requested(fi_info* info, std::span<const std::byte> hello);
  void connected(fid* which, std::span<const std::byte> answer);
  void ended(fid* which);
  std::uint64_t link_of(const fid* which) const;
  void become(Link& link, State state);
  void sweep(std::int64_t now_ns);
  int take_events();
  void watch_events(bool on);

  const OfiObjects o_;
  OfiGreeter* const greeter_;
  fid_eq* eq_ = nullptr;
  fid_pep* pep_ = nullptr;
  fid_ep* receives_ = nullptr;
  int wait_fd_ = -1;  // of cq and eq together
  int eq_fd_ = -1;
  bool is_hushed_ = false;
  std::int64_t progressed_ns_ = 0;  // when the last progress() was over
  std::int64_t saved_ns_ = 0;       // what is left of its share; below 0: what it took too much
  std::int64_t rests_until_ns_ = 0;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<fid_ep*> anonymous_;
  std::unique_ptr<Uninvited> uninvited_;
  std::size_t pending_ = 0;  // links that are greeting or accepting
  bool must_look_ = false;
  std::uint64_t refused_ = 0;
};

}  // namespace orrery::wire
