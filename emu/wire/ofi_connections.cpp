// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/ofi_connections.hpp"

#include "emu/base/wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace orrery::wire {

namespace {

// A connection that has not come about by then is given up; the frames that wait for it try again.
constexpr std::int64_t kAttemptNs = 2'000'000'000;
// After a failure the next attempt waits so long, doubled up to 2^kMostDoublings times that.
constexpr std::int64_t kRetryNs = 10'000'000;
constexpr std::uint32_t kMostDoublings = 5;
constexpr int kMostEvents = 16;  // of one progress()
// What progress() takes of the time in the long run when it is not due: one part in so many...
constexpr std::int64_t kShare = 16;
// ...with so much at once...
constexpr std::int64_t kMostSavedNs = 1'000'000;
// ...and the longest rest after it: it may have been the scheduler that took the time.
constexpr std::int64_t kLongestRestNs = 20'000'000;
constexpr std::size_t kMostAnonymous = 64;
constexpr std::uint64_t kNoLink = UINT64_MAX;

// Room for an event and what the other end says with it.
struct alignas(fi_eq_cm_entry) EventBuffer {
  std::array<std::byte, sizeof(fi_eq_cm_entry) + 256> bytes;
};

}  // namespace

Result<std::unique_ptr<OfiConnections>> OfiConnections::open(const OfiObjects& objects, OfiGreeter* greeter,
                                                             std::string* why) {
  std::unique_ptr<OfiConnections> connections(new OfiConnections(objects, greeter));
  if (const Status status = connections->listen(why); !status.ok()) return status.code();
  return connections;
}

Status OfiConnections::listen(std::string* why) {
  const auto failed = [&](const char* what, int code) {
    *why = fmt::format("{}: {}", what, std::strerror(-code));
    return code == -FI_EADDRNOTAVAIL ? Errc::not_done : Errc::system;
  };
  fi_eq_attr attributes{};
  attributes.wait_obj = FI_WAIT_FD;
  if (const int e = fi_eq_open(o_.fabric, &attributes, &eq_, nullptr)) return failed("fi_eq_open", e);
  if (const int e = fi_srx_context(o_.domain, o_.info->rx_attr, &receives_, nullptr))
    return failed("fi_srx_context", e);
  // Some providers report a receive that was taken back to it, and some know no such binding.
  (void)fi_ep_bind(receives_, &o_.cq->fid, FI_RECV);
  (void)fi_enable(receives_);
  if (const int e = fi_passive_ep(o_.fabric, o_.info, &pep_, nullptr)) return failed("fi_passive_ep", e);
  if (const int e = fi_pep_bind(pep_, &eq_->fid, 0)) return failed("fi_pep_bind", e);
  if (const int e = fi_listen(pep_)) return failed("fi_listen", e);
  uninvited_ = std::make_unique<Uninvited>(address());

  int of_cq = -1;
  if (fi_control(&o_.cq->fid, FI_GETWAIT, &of_cq) != 0 || fi_control(&eq_->fid, FI_GETWAIT, &eq_fd_) != 0)
    return {};
  wait_fd_ = epoll_create1(EPOLL_CLOEXEC);
  for (const int fd : {of_cq, eq_fd_}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (wait_fd_ < 0 || epoll_ctl(wait_fd_, EPOLL_CTL_ADD, fd, &event) != 0)
      return failed("epoll_ctl", -errno);
  }
  return {};
}

OfiConnections::~OfiConnections() {
  const auto close_all = [](auto* object) {
    if (object != nullptr) fi_close(&object->fid);
  };
  for (const auto& link : links_) close_all(link->ep);
  for (fid_ep* const ep : anonymous_) close_all(ep);
  close_all(pep_);
  close_all(receives_);
  if (wait_fd_ >= 0) close(wait_fd_);
  close_all(eq_);
}

std::vector<std::byte> OfiConnections::address() const {
  std::vector<std::byte> bytes(256);
  std::size_t size = bytes.size();
  if (fi_getname(&pep_->fid, bytes.data(), &size) != 0) size = 0;
  bytes.resize(size);
  return bytes;
}

std::uint64_t OfiConnections::insert(std::span<const std::byte> address) {
  links_.push_back(std::make_unique<Link>());
  links_.back()->address.assign(address.begin(), address.end());
  return links_.size() - 1;
}

void OfiConnections::forget(std::uint64_t peer) {
  Link& link = *links_[peer];
  end(link, false);
  link.forgotten = true;
}

// Counts those that something is due for.
void OfiConnections::become(Link& link, State state) {
  const auto counts = [](State s) { return s == State::greeting || s == State::accepting; };
  if (counts(link.state)) --pending_;
  if (counts(state)) ++pending_;
  link.state = state;
}

void OfiConnections::end(Link& link, bool failed) {
  if (link.ep != nullptr) fi_close(&link.ep->fid);
  link.ep = nullptr;
  become(link, State::idle);
  if (!failed) return;
  link.at_ns = monotonic_ns() + (kRetryNs << std::min(link.failures, kMostDoublings));
  ++link.failures;
}

fid_ep* OfiConnections::endpoint(fi_info* info) {
  fid_ep* ep = nullptr;
  if (fi_endpoint(o_.domain, info, &ep, nullptr) != 0) return nullptr;
  if (fi_ep_bind(ep, &eq_->fid, 0) == 0 && fi_ep_bind(ep, &o_.cq->fid, FI_TRANSMIT | FI_RECV) == 0 &&
      fi_ep_bind(ep, &receives_->fid, 0) == 0 && fi_enable(ep) == 0)
    return ep;
  fi_close(&ep->fid);
  return nullptr;
}

fid_ep* OfiConnections::ready(std::uint64_t peer) {
  Link& link = *links_[peer];
  if (link.state == State::connected) [[likely]]
    return link.ep;
  if (link.state == State::idle && !link.forgotten && monotonic_ns() >= link.at_ns) begin(peer);
  return nullptr;
}

void OfiConnections::begin(std::uint64_t peer) {
  Link& link = *links_[peer];
  const std::vector<std::byte> hello =
      greeter_ != nullptr ? greeter_->hello_to(peer) : std::vector<std::byte>();
  link.ep = endpoint(o_.info);
  if (link.ep == nullptr ||
      fi_connect(link.ep, link.address.data(), hello.empty() ? nullptr : hello.data(), hello.size()) != 0)
    return end(link, true);
  link.at_ns = monotonic_ns() + kAttemptNs;
  become(link, State::greeting);
}

std::uint64_t OfiConnections::link_of(const fid* which) const {
  const auto found = std::find_if(links_.begin(), links_.end(), [which](const auto& link) {
    return link->ep != nullptr && &link->ep->fid == which;
  });
  return found == links_.end() ? kNoLink : static_cast<std::uint64_t>(found - links_.begin());
}

void OfiConnections::requested(fi_info* info, std::span<const std::byte> hello) {
  std::optional<OfiGreeter::Greeted> greeted;
  if (greeter_ == nullptr) {
    greeted.emplace();
  } else {
    greeted = greeter_->greeted(hello);
  }
  Link* const link = greeted && greeter_ != nullptr ? links_[greeted->peer].get() : nullptr;
  const bool is_stranger = !greeted || (link != nullptr && link->forgotten);
  const bool gives_way = link != nullptr && link->state == State::greeting && greeted->we_go_first;
  if (is_stranger) ++refused_;
  const bool full = greeter_ == nullptr && anonymous_.size() >= kMostAnonymous;
  fid_ep* const ep = is_stranger || gives_way || full ? nullptr : endpoint(info);
  const std::vector<std::byte> answer = greeted ? std::move(greeted->answer) : std::vector<std::byte>();
  if (ep == nullptr || fi_accept(ep, answer.empty() ? nullptr : answer.data(), answer.size()) != 0) {
    if (ep != nullptr) fi_close(&ep->fid);
    (void)fi_reject(pep_, info->handle, nullptr, 0);
    return;
  }
  if (link == nullptr) {
    anonymous_.push_back(ep);
    return;
  }
  // An authentic hello is later than what we had: the other end has given that up.
  end(*link, false);
  link->ep = ep;
  link->at_ns = monotonic_ns() + kAttemptNs;
  become(*link, State::accepting);
}

void OfiConnections::connected(fid* which, std::span<const std::byte> answer) {
  const std::uint64_t number = link_of(which);
  if (number == kNoLink) return;
  Link& link = *links_[number];
  if (link.state == State::greeting && greeter_ != nullptr && !greeter_->answered(number, answer)) {
    ++refused_;
    return end(link, true);
  }
  link.failures = 0;
  become(link, State::connected);
}

void OfiConnections::ended(fid* which) {
  if (const std::uint64_t number = link_of(which); number != kNoLink) return end(*links_[number], true);
  const auto found =
      std::find_if(anonymous_.begin(), anonymous_.end(), [which](fid_ep* ep) { return &ep->fid == which; });
  if (found == anonymous_.end()) return;
  fi_close(which);
  anonymous_.erase(found);
}

bool OfiConnections::rests() const {
  return rests_until_ns_ != 0 && !is_due() && monotonic_ns() < rests_until_ns_;
}

void OfiConnections::watch_events(bool on) {
  epoll_event event{};
  event.events = on ? static_cast<std::uint32_t>(EPOLLIN) : 0;
  if (wait_fd_ >= 0 && epoll_ctl(wait_fd_, EPOLL_CTL_MOD, eq_fd_, &event) == 0) is_hushed_ = !on;
}

void OfiConnections::hush() {
  if (!is_hushed_) watch_events(false);
}

int OfiConnections::progress() {
  if (is_hushed_) watch_events(true);
  const std::int64_t begin_ns = monotonic_ns();
  saved_ns_ = std::min(kMostSavedNs, saved_ns_ + (begin_ns - progressed_ns_) / kShare);
  const int events = take_events();
  const std::int64_t now_ns = monotonic_ns();
  if (pending_ != 0) {
    for (const auto& link : links_) {
      if ((link->state == State::greeting || link->state == State::accepting) && now_ns >= link->at_ns)
        end(*link, true);
    }
  }
  if (uninvited_->is_due(now_ns)) sweep(now_ns);
  progressed_ns_ = monotonic_ns();
  saved_ns_ = std::max(-kLongestRestNs / kShare, saved_ns_ - (progressed_ns_ - begin_ns));
  rests_until_ns_ = saved_ns_ < 0 ? progressed_ns_ - saved_ns_ * kShare : 0;
  return events;
}

int OfiConnections::take_events() {
  must_look_ = false;
  int events = 0;
  for (; events < kMostEvents; ++events) {
    EventBuffer buffer;
    std::uint32_t event = 0;
    const ssize_t size = fi_eq_read(eq_, &event, buffer.bytes.data(), buffer.bytes.size(), 0);
    if (size == -FI_EAVAIL) {
      fi_eq_err_entry error{};
      if (fi_eq_readerr(eq_, &error, 0) <= 0) break;
      if (error.fid != nullptr) ended(error.fid);
      continue;
    }
    if (size < static_cast<ssize_t>(sizeof(fi_eq_cm_entry))) break;
    const auto& entry = *reinterpret_cast<const fi_eq_cm_entry*>(buffer.bytes.data());
    const auto said = std::span<const std::byte>(buffer.bytes)
                          .subspan(offsetof(fi_eq_cm_entry, data))
                          .first(static_cast<std::size_t>(size) - offsetof(fi_eq_cm_entry, data));
    if (event == FI_CONNREQ) {
      requested(entry.info, said);
      o_.free_info(entry.info);
    } else if (event == FI_CONNECTED) {
      connected(entry.fid, said);
    } else if (event == FI_SHUTDOWN) {
      ended(entry.fid);
    }
  }
  return events;
}

void OfiConnections::sweep(std::int64_t now_ns) {
  std::vector<std::vector<std::byte>> welcome;
  const auto add = [&welcome](fid_ep* ep) {
    std::vector<std::byte> name(128);
    std::size_t size = name.size();
    if (ep == nullptr || fi_getpeer(ep, name.data(), &size) != 0 || size > name.size()) return;
    name.resize(size);
    welcome.push_back(std::move(name));
  };
  for (const auto& link : links_) add(link->ep);
  for (fid_ep* const ep : anonymous_) add(ep);
  refused_ += static_cast<std::uint64_t>(uninvited_->sweep(welcome, now_ns));
}

}  // namespace orrery::wire
