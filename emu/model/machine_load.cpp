// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/machine_file.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#include <fmt/format.h>

// Where a machine comes from: the files that are compiled in, or a path.
namespace orrery::model {

namespace {

MachineFile load_bare(const std::string& name) {
  MachineFile result;
  if (name.find('/') == std::string::npos && !name.ends_with(".toml")) {
    std::string names;
    for (const ShippedFile& shipped : shipped_machines()) {
      if (shipped.name == name) return parse_machine(shipped.text, fmt::format("{}.toml", name));
      names += (names.empty() ? "" : ", ") + std::string(shipped.name);
    }
    result.error =
        fmt::format("machine '{}' is not known: expected {} or a path that ends in .toml", name, names);
    return result;
  }
  constexpr std::size_t kLargest = 1 << 20;
  std::ifstream in(name, std::ios::binary);
  std::string text(kLargest + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  if ((text.empty() && !in.eof()) || text.size() > kLargest) {
    result.error = fmt::format("{}: cannot be read: expected a machine file of at most 1 MiB", name);
    return result;
  }
  return parse_machine(text, name);
}

}  // namespace

MachineFile load_machine(const std::string& name) {
  // What follows the last '/' may name layers; a file's own name may have a '+' in it before its ".toml".
  const std::size_t toml = name.rfind(".toml"), last = name.rfind('/');
  const std::size_t from =
      toml == std::string::npos || (last != std::string::npos && toml < last) ? last : toml;
  const std::size_t plus = name.find('+', from == std::string::npos ? 0 : from);
  MachineFile file = load_bare(name.substr(0, plus));
  for (std::size_t at = plus; file.description && at != std::string::npos;) {
    const std::size_t next = name.find('+', at + 1);
    file.error = add_layer(&*file.description, name.substr(at + 1, next - at - 1));
    if (!file.error.empty()) file.description.reset();
    at = next;
  }
  return file;
}

}  // namespace orrery::model
