// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// A quote taken apart: the route hop by hop and every cost that adds up, with the source of each. On a
// quiet network; the lines' times add up to the quote's, which a test checks for every operation.
#pragma once

#include "emu/model/machine.hpp"
#include "emu/model/quote.hpp"

#include <string>
#include <vector>

namespace orrery::model {

struct ExplainedCost {
  std::string what;  // "stage eject: from the network to memory"
  Picos time;
  std::string source;  // as the machine file has it
};

struct ExplainedHop {
  LinkId link = kNoLink;
  std::string from, to;  // "(1,0,0)", "group 0 chassis 2 slot 5", "level 1 switch 12", "node 3"
  std::string by;        // "x+ tile 3", "blue", "up"
};

struct Explanation {
  Quote quote;
  std::vector<ExplainedHop> route;       // the way of the data
  std::vector<ExplainedCost> to_data;    // adds up to data_at
  std::vector<ExplainedCost> to_local;   // after that (posted: after the call), up to local_event_at
  std::vector<ExplainedCost> at_target;  // from data_at (gets: the request's arrival) to remote_event_at
  Picos local_from, target_from;         // where the two lists above start
  std::string streams_at;                // what bounds the message's rate
  std::string lacks;                     // the machine file's word on a mechanism that it lacks
};

// REQUIRES: src and dst below the machine's nodes.
Explanation explain(const Machine& machine, const QuoteRequest& request);

// The stages that a collective's price is made of, each once, with what it is for. None where the price is an
// operation's.
std::vector<ExplainedCost> explain_stages(const Machine& machine, Collective collective);

// Where a node sits, in the machine's own words.
std::string place_of(const Pricing& pricing, NodeId node);
// The hops of a route of this machine.
std::vector<ExplainedHop> describe_route(const Pricing& pricing, const Route& route);
// The minimal route that quote() prices for the request, from data's source to its destination.
Route route_of(const Pricing& pricing, const QuoteRequest& request);

}  // namespace orrery::model
