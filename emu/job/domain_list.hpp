// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/job/host_directory.hpp"

#include <string>
#include <string_view>
#include <vector>

// The variables PMI_GNI_PTAG, PMI_GNI_COOKIE, PMI_GNI_DEV_ID and PMI_GNI_LOC_ADDR: decimal lists with colons,
// one item per domain.
namespace orrery::job {

// Pairs of the two lists; as many as both have items, stopping at the first that is no number. Null is empty.
std::vector<HostDirectory::Domain> parse_domain_list(const char* ptags, const char* cookies);

// A fresh pair of domains for a job: neighbouring tags and cookies that survive atoi().
std::vector<HostDirectory::Domain> make_domains();

// The pair that follows from a job's identity, of the same kind: every process of the job finds it by itself.
std::vector<HostDirectory::Domain> domains_of(std::string_view identity);

// Declares the domains of a job. Besides the pair itself the first tag with the second cookie, and each tag
// with the next two: a library that shares the job with another takes cookie + 1 under the tag it was given,
// and some take one more than the last of the list. Errors: no_resource.
Status declare_domains(HostDirectory& directory, const std::vector<HostDirectory::Domain>& domains);

// The values of the four variables for `domains`, all on device 0 at `nic_address`.
struct DomainVariables {
  std::string ptag, cookie, dev_id, loc_addr;
};
DomainVariables domain_variables(const std::vector<HostDirectory::Domain>& domains,
                                 std::uint32_t nic_address);

}  // namespace orrery::job
