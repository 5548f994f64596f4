// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/ofi_library.hpp"

#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include <dlfcn.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

namespace orrery::wire {

constexpr std::uint32_t kApi = FI_VERSION(1, 17);

namespace {

// What the process does at each signal, kept for the lifetime of this. Some libraries of providers
// (libinfinipath) set handlers of their own when they are loaded, which end the program by exit().
class KeptSignals {
 public:
  KeptSignals() {
    for (int signal = 1; signal < NSIG; ++signal)
      has_[signal] = sigaction(signal, nullptr, &was_[signal]) == 0;
  }
  ~KeptSignals() {
    for (int signal = 1; signal < NSIG; ++signal) {
      struct sigaction now {};
      if (has_[signal] && sigaction(signal, nullptr, &now) == 0 &&
          now.sa_sigaction != was_[signal].sa_sigaction)
        sigaction(signal, &was_[signal], nullptr);
    }
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  std::array<struct sigaction, NSIG> was_{};
  std::array<bool, NSIG> has_{};
};

}  // namespace

bool OfiLibrary::open() {
  const KeptSignals signals;
  void* const handle = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return false;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    return function != nullptr;
  };
  return find("fi_getinfo", getinfo) && find("fi_freeinfo", freeinfo) && find("fi_dupinfo", dupinfo) &&
         find("fi_fabric", fabric) && find("fi_strerror", strerror);
}

bool is_address(const std::string& text) {
  if (text.empty()) return false;
  return text.find_first_not_of("0123456789.") == std::string::npos || text.find(':') != std::string::npos;
}

std::string connected_provider(const std::string& provider) {
  if (provider == "net" || provider == "tcp") return provider;
  return provider == "tcp;ofi_rxm" ? "tcp" : "";
}

fi_info* ask(const OfiLibrary& library, const std::string& chosen, const std::string& node, int* error) {
  const std::string connected = connected_provider(chosen);
  const std::string& provider = connected.empty() ? chosen : connected;
  fi_info* const hints = library.dupinfo(nullptr);
  if (hints == nullptr) return nullptr;
  hints->caps = FI_MSG;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = connected.empty() ? FI_EP_RDM : FI_EP_MSG;
  // One set of receive buffers for all connections.
  if (!connected.empty()) hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  // libfabric frees it with the hints.
  if (!provider.empty()) hints->fabric_attr->prov_name = strdup(provider.c_str());
  fi_info* found = nullptr;
  const bool by_address = !node.empty();
  const KeptSignals signals;  // providers may be loaded here
  *error = library.getinfo(kApi, by_address ? node.c_str() : nullptr, nullptr, by_address ? FI_SOURCE : 0,
                           hints, &found);
  library.freeinfo(hints);
  return *error == 0 ? found : nullptr;
}

bool is_loopback(const fi_info& info) {
  const auto* address = static_cast<const unsigned char*>(info.src_addr);
  if (address == nullptr) return false;
  if (info.addr_format == FI_SOCKADDR_IN) return info.src_addrlen >= 8 && address[4] == 127;
  return std::string_view(info.domain_attr->name) == "lo";
}

// Bridges of containers and virtual machines lead to no other host.
static bool is_bridge(const fi_info& info) {
  const std::string_view name = info.domain_attr->name;
  return name.starts_with("docker") || name.starts_with("virbr");
}

bool is_link_local(const fi_info& info) {
  const auto* address = static_cast<const unsigned char*>(info.src_addr);
  return address != nullptr && info.addr_format == FI_SOCKADDR_IN6 && info.src_addrlen >= 24 &&
         address[8] == 0xfe && (address[9] & 0xc0) == 0x80;
}

int rank_of(const fi_info& info) {
  return (is_loopback(info) ? 8 : 0) + (is_bridge(info) ? 4 : 0) + (is_link_local(info) ? 2 : 0) +
         (info.addr_format == FI_SOCKADDR_IN6 ? 1 : 0);
}

}  // namespace orrery::wire
