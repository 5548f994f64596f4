// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/ofi_endpoint.hpp"

#include "emu/base/wait.hpp"
#include "emu/wire/interfaces.hpp"
#include "emu/wire/ofi_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include <dlfcn.h>
#include <netdb.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <sys/socket.h>

namespace orrery::wire {

static_assert(sizeof(OfiOperation::context) >= sizeof(fi_context2));

namespace {

// An interface that has just been set up may take a second to be there, its IPv6 addresses another one.
constexpr std::int64_t kInterfaceNs = 3'000'000'000;
constexpr std::int64_t kPauseNs = 100'000'000;

// Short frames and acknowledgements; of what is longer the copy costs more than the report.
constexpr std::size_t kMostWorthInjecting = 256;

std::string list_of(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

struct OfiEndpoint::Fabric {
  OfiLibrary library;
  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_ep* ep = nullptr;
  fid_cq* cq = nullptr;
  fid_av* av = nullptr;
  fid_mr* mr = nullptr;
  void* desc = nullptr;

  ~Fabric() {
    const auto close = [](auto* object) {
      if (object != nullptr) fi_close(&object->fid);
    };
    close(ep);
    close(mr);
    close(av);
    close(cq);
    close(domain);
    close(fabric);
    if (info != nullptr) library.freeinfo(info);
  }
};

struct OfiEndpoint::Receive {
  OfiOperation operation;
  std::byte* bytes = nullptr;
};

OfiEndpoint::OfiEndpoint(const OfiEndpointOptions& options)
    : options_(options), fabric_(std::make_unique<Fabric>()) {}

OfiEndpoint::~OfiEndpoint() {
  connections_.reset();
  fabric_.reset();
  if (memory_ != nullptr) munmap(memory_, memory_bytes_);
}

std::vector<std::string> OfiEndpoint::usable_providers() {
  OfiLibrary library;
  std::vector<std::string> names;
  if (!library.open()) return names;
  int error = 0;
  fi_info* const all = ask(library, "", "", &error);
  for (const fi_info* info = all; info != nullptr; info = info->next) {
    std::string name = info->fabric_attr->prov_name;
    // Shared memory leads to no other host; our own rings do the same without it.
    if (name != "shm" && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  if (all != nullptr) library.freeinfo(all);
  return names;
}

Result<std::unique_ptr<OfiEndpoint>> OfiEndpoint::open(const OfiEndpointOptions& options, std::string* why) {
  return open(options, monotonic_ns() + kInterfaceNs, why);
}

Result<std::unique_ptr<OfiEndpoint>> OfiEndpoint::open(const OfiEndpointOptions& options,
                                                       std::int64_t deadline_ns, std::string* why) {
  if (options.provider == kAutomatic) {
    // Those that run everywhere, the fastest first (bench/results.md); others are for hosts that have them.
    Result<std::unique_ptr<OfiEndpoint>> opened = Errc::unsupported;
    for (const char* const name : {"net", "tcp", "tcp;ofi_rxm"}) {
      OfiEndpointOptions one = options;
      one.provider = name;
      opened = open(one, deadline_ns, why);
      if (opened.ok()) break;
    }
    return opened;
  }
  std::unique_ptr<OfiEndpoint> endpoint(new OfiEndpoint(options));
  if (const Status status = endpoint->start(deadline_ns, why); !status.ok()) return status.code();
  return endpoint;
}

// Finds what to open: fabric_->info. not_done: nothing yet that leads to other hosts, or, unless this is the
// `last` look, nothing better than what may not.
Status OfiEndpoint::choose(bool last, std::string* why) {
  Fabric& f = *fabric_;
  if (!f.library.open()) {
    const char* const error = dlerror();
    *why =
        fmt::format("libfabric cannot be loaded: {}", error != nullptr ? error : "its functions are missing");
    return Errc::unsupported;
  }
  // A frame goes out whole, however long: by rendezvous, which is for what is longer than this, shorter ones
  // overtake it, and between network namespaces libfabric 1.17 never ends it.
  if (options_.provider.find("ofi_rxm") != std::string::npos)
    setenv("FI_OFI_RXM_BUFFER_SIZE", std::to_string(2 * options_.message_bytes).c_str(), 0);
  int error = 0;
  const auto chosen = choose_interface(options_.interface, addresses_of_host(), why);
  if (!chosen.ok()) return Errc::unsupported;
  // What is no address of IP libfabric may know all the same.
  const std::string address = !chosen.value().address.empty()            ? chosen.value().address
                              : is_address(chosen.value().interface) ? chosen.value().interface
                                                                     : std::string();
  const bool by_address = !address.empty();
  fi_info* const all = ask(f.library, options_.provider, address, &error);
  const fi_info* best = nullptr;
  std::vector<std::string> interfaces;
  for (const fi_info* info = all; info != nullptr; info = info->next) {
    const std::string name = info->domain_attr->name;
    if (std::find(interfaces.begin(), interfaces.end(), name) == interfaces.end()) interfaces.push_back(name);
    if (!options_.interface.empty() && !by_address && name != options_.interface) continue;
    if (best == nullptr || rank_of(*info) < rank_of(*best)) best = info;
  }
  if (best == nullptr) {
    *why = all != nullptr
               ? fmt::format("provider {} has no interface {}; it has: {}", options_.provider,
                             options_.interface, list_of(interfaces))
               : fmt::format("provider {} cannot be used{}: {}; usable here: {}", options_.provider,
                             by_address ? " with address " + options_.interface : "",
                             f.library.strerror(-error), list_of(usable_providers()));
    if (all != nullptr) f.library.freeinfo(all);
    return Errc::unsupported;
  }
  const bool leads_nowhere = is_loopback(*best) || (!last && is_link_local(*best));
  if (options_.other_hosts && options_.interface.empty() && leads_nowhere) {
    *why = fmt::format("provider {} has no interface that leads to other hosts; it has: {}",
                       options_.provider, list_of(interfaces));
    f.library.freeinfo(all);
    return Errc::not_done;
  }
  f.info = f.library.dupinfo(best);
  f.library.freeinfo(all);
  if (f.info == nullptr) {
    *why = "no memory";
    return Errc::no_memory;
  }
  on_loopback_ = is_loopback(*f.info);
  provider_ = f.info->fabric_attr->prov_name;
  // What is longer than its buffers ofi_rxm sends by rendezvous, see above.
  const bool gathers = (f.info->domain_attr->mr_mode & FI_MR_LOCAL) == 0 &&
                       options_.provider.find("ofi_rxm") == std::string::npos &&
                       f.info->tx_attr->iov_limit >= kMostParts &&
                       f.info->ep_attr->max_msg_size >= options_.gathered_bytes;
  longest_gathered_ = gathers ? options_.gathered_bytes : 0;
  longest_injected_ =
      static_cast<std::uint32_t>(std::min<std::size_t>(f.info->tx_attr->inject_size, kMostWorthInjecting));
  receive_bytes_ = std::max(options_.message_bytes, longest_gathered_);
  return {};
}

Status OfiEndpoint::start(std::int64_t deadline_ns, std::string* why) {
  for (;;) {
    const bool last = monotonic_ns() >= deadline_ns;
    Status status = choose(last, why);
    if (status.ok()) status = set_up(why);
    if (status.code() != Errc::not_done) return status;
    if (last) return Errc::unsupported;
    const timespec pause{0, kPauseNs};
    nanosleep(&pause, nullptr);
    connections_.reset();
    fabric_ = std::make_unique<Fabric>();
    wait_fd_ = -1;
  }
}

// An endpoint that makes connections by itself, if any.
template <typename Failed>
Status OfiEndpoint::set_up_unconnected(const Failed& failed) {
  Fabric& f = *fabric_;
  fi_av_attr av{};
  av.type = FI_AV_TABLE;
  if (fi_av_open(f.domain, &av, &f.av, nullptr) != 0) {
    av.type = FI_AV_MAP;
    if (const int e = fi_av_open(f.domain, &av, &f.av, nullptr)) return failed("fi_av_open", e);
  }
  if (const int e = fi_endpoint(f.domain, f.info, &f.ep, nullptr)) return failed("fi_endpoint", e);
  if (const int e = fi_ep_bind(f.ep, &f.av->fid, 0)) return failed("fi_ep_bind", e);
  if (const int e = fi_ep_bind(f.ep, &f.cq->fid, FI_TRANSMIT | FI_RECV)) return failed("fi_ep_bind", e);
  if (const int e = fi_enable(f.ep)) return failed("fi_enable", e);
  return {};
}

// not_done: the address is not to be had yet.
Status OfiEndpoint::set_up(std::string* why) {
  Fabric& f = *fabric_;
  const auto failed = [&](const char* what, int code) {
    *why = fmt::format("provider {}: {}: {}", provider_, what, f.library.strerror(-code));
    // An IPv6 address may not be used before the kernel knows that no other host has it.
    return Status(code == -FI_EADDRNOTAVAIL ? Errc::not_done : Errc::system);
  };
  if (f.info->ep_attr->max_msg_size < options_.message_bytes) return failed("message size", -FI_EMSGSIZE);
  if (const int e = f.library.fabric(f.info->fabric_attr, &f.fabric, nullptr)) return failed("fi_fabric", e);
  if (const int e = fi_domain(f.fabric, f.info, &f.domain, nullptr)) return failed("fi_domain", e);

  fi_cq_attr cq{};
  cq.format = FI_CQ_FORMAT_MSG;
  cq.size = options_.sends + options_.receives;
  cq.wait_obj = FI_WAIT_FD;
  if (fi_cq_open(f.domain, &cq, &f.cq, nullptr) != 0) {
    cq.wait_obj = FI_WAIT_NONE;
    if (const int e = fi_cq_open(f.domain, &cq, &f.cq, nullptr)) return failed("fi_cq_open", e);
  } else if (fi_control(&f.cq->fid, FI_GETWAIT, &wait_fd_) != 0) {
    wait_fd_ = -1;
  }
  if (!connected_provider(options_.provider).empty()) {
    std::string what;
    auto opened =
        OfiConnections::open({f.fabric, f.domain, f.cq, f.info, f.library.freeinfo}, options_.greeter, &what);
    if (!opened.ok()) {
      *why = fmt::format("provider {}: {}", provider_, what);
      return opened.code();
    }
    connections_ = std::move(opened).value();
    wait_fd_ = connections_->wait_fd();
  } else if (const Status status = set_up_unconnected(failed); !status.ok()) {
    return status;
  }

  // Only touched pages cost memory.
  // They are filled in turn: so many that the provider need not wait, so few that long ones stay in the
  // cache.
  constexpr std::uint32_t kLongReceives = 8;
  const std::uint32_t receives = receive_bytes_ > options_.message_bytes
                                     ? std::min(options_.receives, kLongReceives)
                                     : options_.receives;
  const std::size_t received_bytes = std::size_t{receives} * receive_bytes_;
  memory_bytes_ = std::size_t{options_.sends} * options_.message_bytes + received_bytes;
  void* const memory = mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    *why = fmt::format("no memory for {} bytes of buffers", memory_bytes_);
    return Errc::no_memory;
  }
  memory_ = static_cast<std::byte*>(memory);
  send_buffers_ = memory_ + received_bytes;
  if ((f.info->domain_attr->mr_mode & FI_MR_LOCAL) != 0) {
    if (const int e =
            fi_mr_reg(f.domain, memory_, memory_bytes_, FI_SEND | FI_RECV, 0, 1, 0, &f.mr, nullptr)) {
      return failed("fi_mr_reg", e);
    }
    f.desc = fi_mr_desc(f.mr);
  }
  receives_ = std::vector<Receive>(receives);
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    receives_[i].operation.is_receive = true;
    receives_[i].bytes = memory_ + i * receive_bytes_;
    post(receives_[i]);
  }
  return {};
}

void OfiEndpoint::post(Receive& receive) {
  fid_ep* const by = connections_ ? connections_->receives() : fabric_->ep;
  const ssize_t result =
      fi_recv(by, receive.bytes, receive_bytes_, fabric_->desc, FI_ADDR_UNSPEC, &receive.operation.context);
  if (result != 0) unposted_.push_back(&receive);
}

std::vector<std::byte> OfiEndpoint::address() const {
  if (connections_) return connections_->address();
  std::vector<std::byte> bytes(256);
  std::size_t size = bytes.size();
  if (fi_getname(&fabric_->ep->fid, bytes.data(), &size) != 0) size = 0;
  bytes.resize(size);
  return bytes;
}

Result<std::uint64_t> OfiEndpoint::insert(std::span<const std::byte> address) {
  // The provider reads as much as its format has, whatever there is.
  if (address.size() < fabric_->info->src_addrlen || address.empty()) return Errc::corrupt;
  if (connections_) return connections_->insert(address);
  fi_addr_t number = FI_ADDR_NOTAVAIL;
  if (fi_av_insert(fabric_->av, address.data(), 1, &number, 0, nullptr) != 1) return Errc::corrupt;
  return std::uint64_t{number};
}

void OfiEndpoint::forget(std::uint64_t peer) {
  if (connections_) connections_->forget(peer);
}

// What sends to a peer; null: there is no connection yet, it is being made.
fid_ep* OfiEndpoint::sender(std::uint64_t peer) const {
  return connections_ ? connections_->ready(peer) : fabric_->ep;
}

std::string OfiEndpoint::text_of(std::uint64_t peer) const {
  std::array<std::byte, 256> address{};
  std::size_t size = address.size();
  std::array<char, 256> text{};
  if (connections_) {
    const auto bytes = connections_->address_of(peer);
    std::copy_n(bytes.begin(), std::min(bytes.size(), address.size()), address.begin());
    const auto* const name = reinterpret_cast<const sockaddr*>(address.data());
    std::array<char, 16> port{};
    if (getnameinfo(name, static_cast<socklen_t>(bytes.size()), text.data(), text.size(), port.data(),
                    port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
      return {};
    return fmt::format("{}:{}", text.data(), port.data());
  }
  if (fi_av_lookup(fabric_->av, peer, address.data(), &size) != 0 || size > address.size()) return {};
  size = text.size() - 1;
  const std::string_view all = fi_av_straddr(fabric_->av, address.data(), text.data(), &size);
  // "fi_sockaddr_in://10.0.0.2:40123"
  const std::size_t scheme = all.find("://");
  return std::string(scheme == std::string_view::npos ? all : all.substr(scheme + 3));
}

Status OfiEndpoint::send(std::uint64_t peer, std::span<const std::byte> bytes, OfiOperation& operation) {
  operation.is_receive = false;
  fid_ep* const by = sender(peer);
  if (by == nullptr) return Errc::not_done;
  const ssize_t result = fi_send(by, bytes.data(), bytes.size(), fabric_->desc, peer, &operation.context);
  return sent_or_not(result);
}

Status OfiEndpoint::inject(std::uint64_t peer, std::span<const std::byte> bytes) {
  fid_ep* const by = sender(peer);
  if (by == nullptr) return Errc::not_done;
  return sent_or_not(fi_inject(by, bytes.data(), bytes.size(), peer));
}

Status OfiEndpoint::send_parts(std::uint64_t peer, std::span<const std::span<const std::byte>> parts,
                               OfiOperation& operation) {
  std::array<iovec, kMostParts> vectors;
  std::array<void*, kMostParts> descriptors{};
  if (parts.size() > vectors.size()) return Errc::size;
  for (std::size_t i = 0; i < parts.size(); ++i)
    vectors[i] = {const_cast<std::byte*>(parts[i].data()), parts[i].size()};
  operation.is_receive = false;
  fid_ep* const by = sender(peer);
  if (by == nullptr) return Errc::not_done;
  return sent_or_not(
      fi_sendv(by, vectors.data(), descriptors.data(), parts.size(), peer, &operation.context));
}

Status OfiEndpoint::sent_or_not(std::int64_t result) {
  if (result == 0) return {};
  if (result == -FI_EAGAIN) return Errc::not_done;
  ++failures_;
  if (connections_) connections_->look();
  return Errc::unreachable;
}

int OfiEndpoint::read_error(OfiEvents& events) {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(fabric_->cq, &entry, 0) != 1) return 0;
  ++failures_;
  if (entry.op_context == nullptr) return 1;
  auto& operation = *reinterpret_cast<OfiOperation*>(entry.op_context);
  if (operation.is_receive) {
    post(reinterpret_cast<Receive&>(operation));
  } else {
    events.sent(operation);
  }
  return 1;
}

int OfiEndpoint::poll(OfiEvents& events, int limit) {
  static_assert(offsetof(OfiOperation, context) == 0 && offsetof(Receive, operation) == 0);
  int done = 0;
  // Asking for news of connections costs as much as a look for messages.
  constexpr std::uint32_t kPollsBetween = 128;
  if (connections_ && (connections_->is_due() || (polls_++ % kPollsBetween == 0 && !connections_->rests())))
      [[unlikely]]
    done += connections_->progress();
  if (last_ != nullptr) post(*std::exchange(last_, nullptr));
  while (done < limit) {
    std::array<fi_cq_msg_entry, 16> entries;
    const ssize_t count = fi_cq_read(fabric_->cq, entries.data(), entries.size());
    if (count == -FI_EAVAIL) {
      done += std::max(1, read_error(events));
      continue;
    }
    if (count <= 0) break;
    for (ssize_t i = 0; i < count; ++i) {
      auto& operation = *reinterpret_cast<OfiOperation*>(entries[static_cast<std::size_t>(i)].op_context);
      if (operation.is_receive) {
        auto& receive = reinterpret_cast<Receive&>(operation);
        events.arrived(
            {receive.bytes, std::min<std::size_t>(entries[static_cast<std::size_t>(i)].len, receive_bytes_)});
        // The last one is given back by the next poll: the receiver of what it brought hears of it sooner.
        if (last_ != nullptr) post(*last_);
        last_ = &receive;
      } else {
        events.sent(operation);
      }
    }
    done += static_cast<int>(count);
    if (count < static_cast<ssize_t>(entries.size())) break;
  }
  if (!unposted_.empty()) [[unlikely]] {
    for (Receive* const receive : std::exchange(unposted_, {})) post(*receive);
  }
  return done;
}

bool OfiEndpoint::may_sleep() {
  if (wait_fd_ < 0) return false;
  fid* fids[] = {&fabric_->cq->fid, nullptr};
  wake_at_ns_ = 0;
  if (!connections_) return fi_trywait(fabric_->fabric, fids, 1) == 0;
  if (connections_->rests()) {
    connections_->hush();
    wake_at_ns_ = connections_->rests_until_ns();
    return fi_trywait(fabric_->fabric, fids, 1) == 0;
  }
  // A connection that comes wakes no thread that it does not concern: it is looked for before every sleep.
  if (connections_->progress() != 0) return false;
  fids[1] = &connections_->events()->fid;
  return fi_trywait(fabric_->fabric, fids, 2) == 0;
}

}  // namespace orrery::wire
