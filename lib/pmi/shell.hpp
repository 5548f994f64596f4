// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "lib/pmi/session.hpp"

// What the C functions share: every one of them is a shell over Session.
namespace orrery::pmi {

// The total table from our codes to PMI's; version 2 has the same numbers.
int pmi_code(Errc code);

// Copies `text` with its terminating zero into `buffer` of `length` bytes; false when it does not fit.
bool copy_out(std::string_view text, char* buffer, int length);

// Whether a key may be one: PMI_SUCCESS, PMI_ERR_INVALID_KEY (null, empty, blanks),
// PMI_ERR_INVALID_KEY_LENGTH.
int checked_key(const Session& session, const char* key);

// As PMI_KVS_Put and PMI_KVS_Get without the name of the space.
int put_pair(Session& session, const char* key, const char* value);
Result<std::string> get_pair(Session& session, const char* key);

}  // namespace orrery::pmi
