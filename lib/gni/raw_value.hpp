// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/common/raw_value.hpp"

namespace orrery::gni {

using common::raw_value;

}  // namespace orrery::gni
