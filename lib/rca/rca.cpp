// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/job.hpp"

#include "include/rca/rca_lib.h"

#include <cstdlib>
#include <set>

namespace {

constexpr std::uint64_t kNode = 1;  // type of a component that is a node

rs_node_t name_of(std::uint32_t nid) {
  rs_node_t node;
  node.rs_node_flat = 0;
  node.rs_node_s._type = kNode;
  node.rs_node_s._node_id = nid;
  return node;
}

}  // namespace

extern "C" {

int rca_get_nodeid(rs_node_t* node) {
  if (node == nullptr) return -1;
  const auto job = orrery::job::Job::of_process();
  if (!job.ok()) return -1;
  *node = name_of(job.value()->nid());
  return 0;
}

int rca_get_sysnodes(rs_node_array_t* nodes) {
  if (nodes == nullptr) return -1;
  const auto job = orrery::job::Job::of_process();
  if (!job.ok()) return -1;
  std::set<std::uint32_t> nids;
  for (const auto& place : job.value()->placement().pes()) nids.insert(place.nid);
  nids.insert(job.value()->nid());
  auto* const list = static_cast<rs_node_t*>(std::calloc(nids.size(), sizeof(rs_node_t)));
  if (list == nullptr) return -1;
  nodes->na_len = static_cast<std::int32_t>(nids.size());
  nodes->na_ids = list;
  std::size_t i = 0;
  for (const std::uint32_t nid : nids) list[i++] = name_of(nid);
  return 0;
}

}  // extern "C"
