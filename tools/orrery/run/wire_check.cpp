// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/run/wire_check.hpp"

#include "emu/wire/ofi_endpoint.hpp"

#include <sys/wait.h>
#include <unistd.h>

namespace orrery::tool {

namespace {

constexpr unsigned kPatienceSeconds = 20;

[[noreturn]] void try_it(int report, const std::string& provider, const std::string& interface) {
  alarm(kPatienceSeconds);
  std::string why;
  const wire::OfiEndpointOptions options{.provider = provider.empty() ? wire::kAutomatic : provider,
                                         .interface = interface,
                                         .message_bytes = 4096,
                                         .receives = 1,
                                         .sends = 1};
  if (wire::OfiEndpoint::open(options, &why).ok()) _exit(0);
  const bool told = write(report, why.data(), why.size()) == static_cast<ssize_t>(why.size());
  _exit(told ? 1 : 2);
}

}  // namespace

std::string why_no_wire(const std::string& provider, const std::string& interface) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    try_it(ends[1], provider, interface);
  }
  close(ends[1]);
  std::string why;
  char part[512];
  for (ssize_t n = 0; child > 0 && (n = read(ends[0], part, sizeof part)) > 0;)
    why.append(part, static_cast<std::size_t>(n));
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return why;
}

}  // namespace orrery::tool
