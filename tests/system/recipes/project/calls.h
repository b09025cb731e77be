/* SPDX-License-Identifier: Apache-2.0 */
/* A small program of every kind of part: an executable, a shared library, an archive, a plugin, C++ templates in two units. */
#ifndef CALLS_H
#define CALLS_H

/* Calls stay calls, whatever the optimiser would make of them. */
#if defined(__clang__)
#define KEEP __attribute__((noinline, optnone))
#else
#define KEEP __attribute__((noipa, optimize("no-optimize-sibling-calls")))
#endif
#define API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif
API int shared_work(int value);
API int plugin_work(int value);
int archive_work(int value);
int first_unit(int value);
int second_unit(int value);
#ifdef __cplusplus
}
#endif

#endif
