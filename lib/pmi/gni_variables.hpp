// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/job/domain_list.hpp"
#include "emu/job/launch.hpp"

#include <string>

// PMI_GNI_PTAG, PMI_GNI_COOKIE, PMI_GNI_DEV_ID and PMI_GNI_LOC_ADDR of the environment. Clients read them
// before they call PMI_Init: `orrery run` sets them, else this library does when it is loaded, unless
// PMI_NO_PREINITIALIZE is set. ORRERY_GNI_OF says of which job they are. Where it is missing the user has set
// them, and they stay. One thread.
namespace orrery::pmi {

// What tells this job from all others, from the environment alone, so that every process of it finds the
// same; empty: the launcher gives nothing that all its hosts have, or there is none.
std::string job_identity(const job::Launch& launch);

// Takes away what a job around this one left, and sets what can be known now: domains that follow from the
// job's identity, of a process alone fresh ones; the NIC address that this host has when no launcher places
// the PEs.
void settle_gni_variables(const job::Launch& launch);

// Sets what the job has agreed on.
void set_gni_variables(const job::DomainVariables& variables);

}  // namespace orrery::pmi
