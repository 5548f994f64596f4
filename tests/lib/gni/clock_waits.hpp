// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

// Prints a line for each of the timed waits that virtual time serves.
void timed_waits();
