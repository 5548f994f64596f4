// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/attributes.hpp"

#include <algorithm>
#include <array>

namespace orrery::dmapp {

namespace {

constexpr std::uint32_t kRoutings = DMAPP_ROUTING_ADAPTIVE_3 + 1;

std::uint32_t routing(std::uint32_t asked) {
  return asked < kRoutings ? asked : std::uint32_t{DMAPP_ROUTING_ADAPTIVE};
}

// The members that any thread may change at any time.
void set_orders(Attributes* a, std::uint32_t put, std::uint32_t get, std::uint32_t threshold) {
  a->put_relaxed_ordering = routing(put);
  a->get_relaxed_ordering = routing(get);
  a->offload_threshold = threshold;
}

void set_limits(Attributes* a, std::uint32_t outstanding, std::uint32_t threads) {
  if (outstanding != 0) {
    a->max_outstanding_nb =
        std::clamp<std::uint32_t>(outstanding, DMAPP_MIN_OUTSTANDING_NB, DMAPP_MAX_OUTSTANDING_NB);
  }
  a->max_concurrency = std::max<std::uint32_t>(threads, 1);
}

}  // namespace

Attributes default_attributes() {
  Attributes a{};
  a.max_outstanding_nb = DMAPP_DEF_OUTSTANDING_NB;
  a.offload_threshold = DMAPP_OFFLOAD_THRESHOLD;
  a.put_relaxed_ordering = DMAPP_ROUTING_ADAPTIVE;
  a.get_relaxed_ordering = DMAPP_ROUTING_ADAPTIVE;
  a.max_concurrency = 1;
  a.PI_ordering = DMAPP_PI_ORDERING_RELAXED;
  a.queue_depth = DMAPP_QUEUE_DEFAULT_DEPTH;
  a.queue_nelems = DMAPP_QUEUE_DEFAULT_NELEMS;
  return a;
}

Attributes at_init(const dmapp_rma_attrs_ext_t& asked) {
  Attributes a = default_attributes();
  set_orders(&a, asked.put_relaxed_ordering, asked.get_relaxed_ordering, asked.offload_threshold);
  set_limits(&a, asked.max_outstanding_nb, asked.max_concurrency);
  if (asked.PI_ordering <= DMAPP_PI_ORDERING_RELAXED) a.PI_ordering = asked.PI_ordering;
  if (asked.queue_depth != 0) a.queue_depth = std::clamp<std::uint32_t>(asked.queue_depth, 1, 128);
  if (asked.queue_nelems != 0)
    a.queue_nelems = std::clamp<std::uint32_t>(asked.queue_nelems, 2, DMAPP_QUEUE_MAX_NELEMS);
  a.queue_flags = asked.queue_flags & DMAPP_QUEUE_ASYNC_PROGRESS;
  return a;
}

Attributes at_init(const dmapp_rma_attrs_t& asked) {
  Attributes a = default_attributes();
  set_orders(&a, asked.put_relaxed_ordering, asked.get_relaxed_ordering, asked.offload_threshold);
  set_limits(&a, asked.max_outstanding_nb, asked.max_concurrency);
  return a;
}

Attributes later(const Attributes& now, const dmapp_rma_attrs_ext_t& asked) {
  Attributes a = now;
  set_orders(&a, asked.put_relaxed_ordering, asked.get_relaxed_ordering, asked.offload_threshold);
  return a;
}

Attributes later(const Attributes& now, const dmapp_rma_attrs_t& asked) {
  Attributes a = now;
  set_orders(&a, asked.put_relaxed_ordering, asked.get_relaxed_ordering, asked.offload_threshold);
  return a;
}

dmapp_rma_attrs_t short_form(const Attributes& a) {
  return {.max_outstanding_nb = a.max_outstanding_nb,
          .offload_threshold = a.offload_threshold,
          .put_relaxed_ordering = a.put_relaxed_ordering,
          .get_relaxed_ordering = a.get_relaxed_ordering,
          .max_concurrency = a.max_concurrency};
}

std::uint16_t delivery_of(std::uint32_t routing) {
  constexpr std::array<std::uint16_t, kRoutings> kWords{
      0x003,  // in order: no adaption, no hashing
      0x008,  // deterministic: hashed over non-minimal paths
      0x000,  // adaptive, no bias
      0x010,  // deterministic 1: hashed over minimal paths
      0x020,  // adaptive 1 to 3: ever more for minimal paths
      0x040, 0x080};
  return routing < kRoutings ? kWords[routing] : kWords[DMAPP_ROUTING_ADAPTIVE];
}

}  // namespace orrery::dmapp
