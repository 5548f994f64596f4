/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Where programs of Cray's and SGI's SHMEM look for it. */
#include "../shmem.h"
