// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/own_descriptor.hpp"
#include "lib/cci/debug.hpp"
#include "lib/cci/endpoint.hpp"

#include <cerrno>
#include <cstring>
#include <optional>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

// A device fails when the host loses the address that it stands for: the address is removed, or its interface
// goes down. The kernel says that something about addresses has changed; whether this one is still there is
// then looked up.
namespace orrery::cci {

namespace {

// Null: the addresses cannot be listed now (descriptors or memory are used up; errno).
std::optional<bool> has_address(const std::string& ip) {
  in_addr wanted{};
  ifaddrs* all = nullptr;
  if (::inet_pton(AF_INET, ip.c_str(), &wanted) != 1) return false;
  if (::getifaddrs(&all) != 0) return std::nullopt;
  bool found = false;
  for (const ifaddrs* i = all; i != nullptr && !found; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET || (i->ifa_flags & IFF_UP) == 0) continue;
    found = reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr.s_addr == wanted.s_addr;
  }
  ::freeifaddrs(all);
  return found;
}

}  // namespace

// Whether packets to that address stay on this host, as the kernel's routes say: an interface's address, any
// of 127.0.0.0/8, or one that is routed here. True where the kernel does not say.
bool is_of_this_host(in_addr address) {
  const UniqueFd routes(own_descriptor(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)));
  struct {
    nlmsghdr header;
    rtmsg route;
    rtattr attribute;
    in_addr destination;
  } ask{};
  ask.header.nlmsg_len = sizeof ask;
  ask.header.nlmsg_type = RTM_GETROUTE;
  ask.header.nlmsg_flags = NLM_F_REQUEST;
  ask.route.rtm_family = AF_INET;
  ask.route.rtm_dst_len = 32;
  ask.attribute.rta_type = RTA_DST;
  ask.attribute.rta_len = RTA_LENGTH(sizeof address);
  ask.destination = address;
  alignas(nlmsghdr) std::byte reply[1024];
  iovec piece{&ask, sizeof ask};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!routes.valid() || ::sendmsg(routes.get(), &message, 0) != static_cast<ssize_t>(sizeof ask))
    return true;
  piece = {reply, sizeof reply};
  ssize_t n;
  do n = ::recvmsg(routes.get(), &message, 0);
  while (n < 0 && errno == EINTR);
  const auto* const header = reinterpret_cast<const nlmsghdr*>(reply);
  if (n < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr)))) return true;
  // No way there, which a packet has come by: another host's.
  if (header->nlmsg_type == NLMSG_ERROR) return false;
  if (header->nlmsg_type != RTM_NEWROUTE) return true;
  return static_cast<const rtmsg*>(NLMSG_DATA(header))->rtm_type == RTN_LOCAL;
}

// Where the kernel does not tell, or the address is one that no interface lists (127.0.0.2), the device does
// not fail.
void Endpoint::watch_address() {
  if (clock_ != nullptr) return;
  addresses_.reset(
      own_descriptor(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE)));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_LINK;
  if (!addresses_.valid() ||
      ::bind(addresses_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      has_address(device_.ip) != true) {
    addresses_.reset();
    return;
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &addresses_;
  ::epoll_ctl(net_.get(), EPOLL_CTL_ADD, addresses_.get(), &event);
}

// Something has changed. REQUIRES: lock_ is held.
void Endpoint::look_after_address() {
  char unread[4096];
  iovec piece{unread, sizeof unread};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  // Each datagram, or the error that some were lost.
  while (::recvmsg(addresses_.get(), &message, MSG_DONTWAIT) >= 0 || errno == ENOBUFS) {
  }
  if (failed_) return;
  const std::optional<bool> is_there = has_address(device_.ip);
  if (!is_there) {
    debug::tell(debug::Topic::ep, "whether this host still has the address " + device_.ip +
                                      " cannot be looked up: " + std::strerror(errno) + "; it is kept");
  }
  if (is_there != false) return;
  failed_ = true;
  debug::tell(debug::Topic::ep, "this host has no address " + device_.ip + " any more");
  addresses_.reset();
  address_listener_.reset();
  local_listener_.reset();
  for (std::size_t place = 0; place < connections_.size(); ++place) {
    Connection* const connection = connections_[place].get();
    if (connection->state == ConnectionState::open) fail_all(connection, CCI_ERR_DEVICE_DEAD);
    lose(connection);
  }
  Event* const event = new_event();
  event->show(cci_event_endpoint_device_failed{CCI_EVENT_ENDPOINT_DEVICE_FAILED, &shown});
  raise(event);
}

}  // namespace orrery::cci
