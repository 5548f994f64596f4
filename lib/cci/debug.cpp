// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/cci/debug.hpp"

#include <atomic>
#include <cstdlib>
#include <string>

#include <unistd.h>

namespace orrery::cci::debug {

namespace {

constexpr std::string_view kTopics[] = {"mem",  "msg",  "peer", "conn", "err",
                                        "func", "info", "warn", "ctp",  "ep"};
std::atomic<std::uint32_t> g_topics{0};

void put_line(std::string_view text) {
  std::string line = "cci: ";
  line += text;
  line += '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void read_environment() {
  const char* const wanted = ::secure_getenv("CCI_DEBUG");
  std::uint32_t topics = 0;
  std::string_view rest = wanted == nullptr ? "" : wanted;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    if (name.empty()) continue;
    bool known = name == "all";
    if (known) topics = ~0u;
    for (std::uint32_t i = 0; i < std::size(kTopics); ++i) {
      if (name != kTopics[i]) continue;
      topics |= 1u << i;
      known = true;
    }
    if (!known) {
      std::string text = "CCI_DEBUG: '";
      text += name;
      text += "' is none of mem, msg, peer, conn, err, func, info, warn, ctp, ep, all";
      complain(text);
    }
  }
  g_topics.store(topics, std::memory_order_relaxed);
}

bool enabled(Topic topic) {
  return (g_topics.load(std::memory_order_relaxed) >> static_cast<std::uint32_t>(topic) & 1) != 0;
}

void tell(Topic topic, std::string_view text) {
  if (!enabled(topic)) return;
  std::string line(kTopics[static_cast<std::size_t>(topic)]);
  line += ": ";
  line += text;
  put_line(line);
}

void complain(std::string_view text) { put_line(text); }

}  // namespace orrery::cci::debug
