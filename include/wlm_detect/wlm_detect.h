/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
#pragma once

/* Which workload manager runs. */

#ifdef __cplusplus
extern "C" {
#endif

/* The name of the workload manager: "SLURM" where SLURM_PROCID is set, as inside a step of Slurm, otherwise
 * "ALPS", whose calls Orrery's alps libraries have. The caller frees it with free(). NULL: no memory. Any
 * thread. */
char* wlm_detect_get_active(void);

/* The one that is there when nothing says otherwise: "ALPS". As above. */
char* wlm_detect_get_default(void);

#ifdef __cplusplus
}
#endif
