// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <string>

#include <rdma/fabric.h>

// libfabric as it is opened at run time, and what is asked of its providers. Any thread.
namespace orrery::wire {

// The few functions of libfabric that are symbols; all others are reached through its objects.
struct OfiLibrary {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;

  // False when it is not installed. Never closed again: providers leave threads and exit handlers behind.
  bool open();
};

// Whether a name of an interface is an address of IP.
bool is_address(const std::string& text);

// The provider to ask for when `provider` goes over TCP. The wire makes its connections itself, and proves
// that each one is a peer's; so the name comes back without ofi_rxm, which would make connections of its own.
// Empty: `provider` does not go over TCP.
std::string connected_provider(const std::string& provider);

// What is needed of a provider; empty: any. Null, and an error of libfabric's: it has nothing of the kind.
fi_info* ask(const OfiLibrary& library, const std::string& chosen, const std::string& node, int* error);

bool is_loopback(const fi_info& info);
// fe80::/10: means something together with the number that an interface has on the host that uses it.
bool is_link_local(const fi_info& info);
// Smaller is better, for the case that no interface was named.
int rank_of(const fi_info& info);

}  // namespace orrery::wire
