// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/common/limits.hpp"
#include "lib/gni/objects.hpp"

namespace orrery::gni {

using common::device_total;
using common::give;
using common::kBteDescriptors;
using common::kFmaDescriptors;
using common::limit_of;
using common::Resource;
using common::take;

}  // namespace orrery::gni
