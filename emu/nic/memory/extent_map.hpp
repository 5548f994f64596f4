// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/state/extent_state.hpp"
#include "emu/nic/state/lock_rank.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace orrery::nic {

// The owner's side of the extents (state/extent_state.hpp): what it tells peers of where its address space
// lies in its memory file. Peers read the words; only this writes them.
// Threads: any; start() to finish(), and publish(), by the service thread. Nothing is allocated but by
// published(): the program's own calls that unmap memory pass through here.
// Invariants: (1) no word covers a page that is leaving; (2) a word is written with a change that none of the
// last 262,143 words had.
// Usage: if (map.start(run)) { map.publish(run, check); map.finish(); }
//        const auto token = map.leave(begin, end); ... map.left(token);
class ExtentMap {
 public:
  struct Run {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool overlaps(std::uint64_t from, std::uint64_t to) const { return begin < to && from < end; }
  };
  using Token = int;

  explicit ExtentMap(NicView view) : view_(view) {}

  // Pages are about to be moved. False: some of them are leaving.
  bool start(Run run);
  // Whether some of the pages that start() named have been taken away since, or are being so.
  bool is_cancelled() const;
  void finish();

  // Says that all of `run`, in one extent, is in the memory file and may be written; `is_there()` is asked
  // for it when no page of it can leave. Between start() and finish().
  // Errors: not_done (some are leaving or have left since start(), or it is not there).
  template <typename Check>
  Errc publish(Run run, Check is_there) {
    const std::lock_guard lock(mu_);
    if (cancelled_ || is_leaving(run) || !is_there()) return Errc::not_done;
    write(run);
    return Errc::ok;
  }

  // The program is about to take these pages away, or their right to be written: no word covers them until
  // left(). The caller then waits for peers that are in the middle of an access.
  Token leave(std::uint64_t begin, std::uint64_t end);
  void left(Token token);

  // Every word gets another change: what a peer was granted by one holds no more.
  void refresh();
  // What is covered now, piece by piece.
  std::vector<Run> published() const;

 private:
  static constexpr std::size_t kMostLeaving = 32;
  bool is_leaving(Run run) const;
  void write(Run run);
  std::uint32_t next_change();
  template <typename Visit>
  void for_each_word(std::uint64_t begin, std::uint64_t end, Visit visit) const;

  const NicView view_;
  mutable Lock<LockRank::extents> mu_;
  std::uint32_t change_ = 0;                 // of the last word, guarded by mu_
  std::array<Run, kMostLeaving> leaving_{};  // guarded by mu_
  std::uint32_t more_leave_ = 0;             // that found no place there: nothing is published. By mu_
  Run adopting_;                             // guarded by mu_
  bool cancelled_ = false;                   // guarded by mu_
};

}  // namespace orrery::nic
