// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/printable.hpp"

namespace orrery {

namespace {

constexpr char kDigits[] = "0123456789abcdef";

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\n' || c == '\t' || (byte >= ' ' && byte < 0x7f);
}

}  // namespace

std::size_t printable_into(std::span<char> out, std::string_view text) {
  std::size_t at = 0;
  for (const char c : text) {
    if (is_plain(c)) {
      if (at == out.size()) break;
      out[at++] = c;
      continue;
    }
    if (out.size() - at < 4) break;
    const auto byte = static_cast<unsigned char>(c);
    for (const char written : {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]}) out[at++] = written;
  }
  return at;
}

std::string printable(std::string_view text) {
  std::string out(4 * text.size(), '\0');
  out.resize(printable_into(out, text));
  return out;
}

}  // namespace orrery
