// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/job.hpp"

#include "include/alps/alps/libalpsutil.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <arpa/inet.h>

// Where the job's processes are, as its placement says.
namespace {

struct Node {
  int nid = 0;
  int first = 0;
  int count = 0;
};

// Lists that were asked for; all or none reach the caller.
class Lists {
 public:
  ~Lists() {
    for (void* list : made_) std::free(list);
  }
  // A list with one item for each of `from`.
  template <typename T, typename From, typename Item>
  void add(T** out, const std::vector<From>& from, Item item) {
    if (out == nullptr || failed_) return;
    auto* const list = static_cast<T*>(std::calloc(from.empty() ? 1 : from.size(), sizeof(T)));
    failed_ = list == nullptr;
    if (failed_) return;
    for (std::size_t i = 0; i < from.size(); ++i) list[i] = item(from[i]);
    made_.push_back(list);
    places_.push_back(reinterpret_cast<void**>(out));
  }
  bool hand_over() {
    if (failed_) return false;
    for (std::size_t i = 0; i < made_.size(); ++i) std::memcpy(places_[i], &made_[i], sizeof(void*));
    made_.clear();
    return true;
  }

 private:
  std::vector<void*> made_;
  std::vector<void**> places_;
  bool failed_ = false;
};

}  // namespace

extern "C" int alps_get_placement_info(uint64_t apid, alpsAppLayout_t* layout, int** placementList,
                                       int** targetNids, int** targetPes, int** targetLen,
                                       struct in_addr** targetIps, int** startPe, int** totalPes,
                                       int** nodePes, int** peCpus) {
  const auto found = orrery::job::Job::of_process();
  if (!found.ok()) return -1;
  const orrery::job::Job& job = *found.value();
  if (apid != 0 && apid != job.directory().job_id()) return -1;
  // Without a placement all that is known is here.
  std::vector<orrery::job::PePlace> pes = job.placement().pes();
  if (pes.empty())
    pes.assign(static_cast<std::size_t>(std::max(job.size(), 1)), {job.nid(), job.nic_address(), 0});
  std::vector<Node> nodes;
  for (std::size_t pe = 0; pe < pes.size(); ++pe) {
    const int nid = static_cast<int>(pes[pe].nid);
    const auto at = std::find_if(nodes.begin(), nodes.end(), [&](const Node& n) { return n.nid == nid; });
    if (at == nodes.end())
      nodes.push_back({nid, static_cast<int>(pe), 1});
    else
      ++at->count;
  }
  Lists lists;
  const auto first = [](const Node& n) { return n.first; };
  const auto count = [](const Node& n) { return n.count; };
  lists.add(placementList, pes, [](const orrery::job::PePlace& p) { return static_cast<int>(p.nid); });
  lists.add(targetNids, nodes, [](const Node& n) { return n.nid; });
  lists.add(targetPes, nodes, first);
  lists.add(targetLen, nodes, count);
  lists.add(targetIps, nodes, [](const Node&) {
    in_addr here{};
    here.s_addr = htonl(INADDR_LOOPBACK);  // the job's nodes are this host
    return here;
  });
  // By command: a job is one.
  const std::vector<int> commands{0};
  lists.add(startPe, commands, [](int) { return 0; });
  lists.add(totalPes, commands, [&](int) { return static_cast<int>(pes.size()); });
  lists.add(nodePes, nodes, count);
  lists.add(peCpus, pes, [](const orrery::job::PePlace&) { return 1; });
  if (!lists.hand_over()) return -1;
  if (layout != nullptr) {
    *layout = {};
    layout->depth = 1;
    layout->numNodes = static_cast<int>(nodes.size());
    layout->numPes = static_cast<int>(pes.size());
    layout->numCmds = 1;
    for (const Node& node : nodes) {
      if (node.nid != static_cast<int>(job.nid())) continue;
      layout->numPesHere = node.count;
      layout->firstPe = node.first;
    }
  }
  return 1;
}
