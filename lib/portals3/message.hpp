// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/portals3/process.hpp"

// What the parts of a data movement call have in common.
namespace orrery::portals3 {

enum class Kind3 : std::uint8_t { put, get, get_put };

// Where an operation goes, as the calls are given it.
struct To {
  ptl_process_id_t target;
  ptl_pt_index_t portal;
  ptl_ac_index_t access;
  ptl_match_bits_t bits;
  ptl_size_t offset;
  ptl_hdr_data_t header_data;
};

match::Arrival arrival_of(Kind3 kind, const To& to, ptl_size_t length);

// On the machine each process has a core: a sender does not lose another's events because that one waits for
// its turn on a core of this host. At most half a queue of such pauses follow each other. `quarters`: of the
// queue, that are taken.
void give_reader_time(const Peer& peer, int quarters);

// A short put that its initiator hears nothing of, to a process that takes it as it is: copied out of its
// descriptor, and one change of the target's match unit. False: nothing has happened, and it goes the
// general way.
bool put_shortly(const Part& part, const To& to);

}  // namespace orrery::portals3
