// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The one table that says how each API's operations are priced: as which operation of the model, or as which
// collective. Words are given without the APIs' prefixes; what follows a dot tells variants of one call
// apart. Which routing a call asks for is another table (routing.hpp). Pure.
#pragma once

#include "emu/model/operation.hpp"

#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace orrery::model {

using Priced = std::variant<Op, Collective>;

struct OperationWord {
  std::string_view api;   // "gni", "dmapp", "portals", "cci", "pmi", "qsnet"
  std::string_view word;  // the API's word
  Priced priced;
  std::string_view note;  // when it is this variant, or what else is counted
};
std::span<const OperationWord> operation_words();

// What "gni.POST_AMO" is priced as. std::nullopt for anything that the table does not have.
std::optional<Priced> priced_by_word(std::string_view api_and_word);
// The model's own name for it.
std::string_view priced_name(Priced priced);

}  // namespace orrery::model
