/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/*
 * Everything: versions 1 and 2 and the extensions.
 */
#pragma once

#include "pmi.h"
#include "pmi2.h"
#include "pmi_cray_ext.h"
