// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/model/dragonfly.hpp"
#include "emu/model/torus.hpp"
#include "emu/sim/failure/losses.hpp"
#include "emu/sim/quadrics/quadrics.hpp"
#include "emu/sim/scene/result.hpp"

#include <cstdint>
#include <vector>

namespace orrery::sim {

// `count` different links, drawn by `seed`, that the machine does without new routing tables: the links
// beside them take their packets. Of a torus every direction of every router keeps one of its parallel links;
// of a dragonfly every two routers keep a black link and every two groups a blue one (green links have none
// beside them). Outcomes: refused where there are no such links, or for more than a quarter of them.
Refusal pick_failed_links(const model::Torus& torus, std::uint32_t count, std::uint64_t seed,
                          std::vector<FailedLink>* out);
Refusal pick_failed_links(const model::Dragonfly& dragonfly, std::uint32_t count, std::uint64_t seed,
                          std::vector<FailedLink>* out);
// Appends links that new tables have to lead round, drawn by `seed`: of a torus all those of `count` pairs of
// neighbours, of a dragonfly `count` green ones. Outcomes: refused for more than a quarter of such pairs.
Refusal pick_severed(const model::Torus& torus, std::uint32_t count, std::uint64_t seed,
                     std::vector<FailedLink>* out);
Refusal pick_severed(const model::Dragonfly& dragonfly, std::uint32_t count, std::uint64_t seed,
                     std::vector<FailedLink>* out);
// Appends all links of a router.
void sever_router(const model::Torus& torus, Node router, std::vector<FailedLink>* out);
void sever_router(const model::Dragonfly& dragonfly, Node router, std::vector<FailedLink>* out);
// Takes `count` links of a fat tree that lead up, each with the one that leads back, out of service; every
// two nodes keep a way. Outcomes: refused for more than a quarter of those above the nodes' own; `net` may
// then have lost some.
Refusal fail_links(Quadrics* net, std::uint32_t count, std::uint64_t seed);

}  // namespace orrery::sim
