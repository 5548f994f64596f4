/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Tools ask as applications do. */

#include "alps.h"
#include "libalpsutil.h"
