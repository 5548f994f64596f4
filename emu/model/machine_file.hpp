// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Reads machine files (TOML, schema 1; docs/machines.md). Untrusted input: anything that is not exactly
// what the schema says is refused with one line that names file, key, value and what is accepted.
#pragma once

#include "emu/model/description.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace orrery::model {

struct MachineFile {
  std::optional<Description> description;  // set on success
  std::string error;                       // one line otherwise
};

// Parses `text`; `file` is named in messages. Never blocks, thread safe.
MachineFile parse_machine(std::string_view text, std::string_view file);

// Reads a file of at most 1 MiB; or, where `name` has no '/' and no ".toml", one of the machines that
// come with the library. "+mpi" behind either adds the machine's layer of that name to its operations.
MachineFile load_machine(const std::string& name);

// The machines that come with the library: their files' text, compiled in from machines/*.toml.
struct ShippedFile {
  std::string_view name;
  std::string_view text;
};
std::span<const ShippedFile> shipped_machines();
// machines/reference.csv
std::string_view shipped_reference();
// machines/measurements.csv: what others measured on such machines, in the same form.
std::string_view shipped_measurements();

}  // namespace orrery::model
