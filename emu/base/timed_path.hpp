// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

// What an operation under virtual time goes through stands together in a few pages of the library. Where many
// PEs take turns on a core, each finds none of its own translations of addresses in the core when its turn
// comes, so every page that its path is spread over costs it (docs/timing.md). A linker's own script puts
// sections of these names side by side; tests/cmake/check_timed_path.py says when they no longer fit.

// At the definition of a function that is not inline.
#define ORRERY_TIMED_PATH [[gnu::section(".text.hot.timed")]]
// At a template, or at a member that is defined in its class: those cannot share a section with others.
#define ORRERY_TIMED_INLINE [[gnu::hot]]
