/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026 the Orrery authors */
/* What cci.h needs of the compiler. */
#ifndef ORRERY_CCI_PUBLIC_CONFIG_H
#define ORRERY_CCI_PUBLIC_CONFIG_H

#ifdef __cplusplus
#define BEGIN_C_DECLS extern "C" {
#define END_C_DECLS }
#else
#define BEGIN_C_DECLS
#define END_C_DECLS
#endif

#define CCI_DECLSPEC __attribute__((visibility("default")))

#endif
