/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would end `millrace record` before it has ended its servers and removed their files: Ctrl-C, Ctrl-\, SIGTERM and SIGHUP.
 * They are noted, and who waits for something asks whether one has come; one that was ignored when we started is no reason to
 * stop. While a program runs Ctrl-C and Ctrl-\ of the terminal reach it anyway, and SIGTERM and SIGHUP are passed on to it. One
 * thread; the state is the process' own.
 *
 *     mr_signals_take();
 *     mr_signals_hold();
 *     pid = fork();
 *     if (pid == 0)
 *         mr_signals_give_back();  // as they were, and what was held comes; then exec
 *     mr_signals_pass_to(pid);
 *     mr_signals_release();
 *     ...
 *     mr_signals_pass_to(0);
 *     if (mr_signals_taken()) ...
 */
#ifndef MR_CLI_SIGNALS_H
#define MR_CLI_SIGNALS_H

#include <sys/types.h>

void mr_signals_take(void);
/* The last one that came; 0: none. */
int mr_signals_taken(void);
/* How many came: who sends another one is in a hurry. */
int mr_signals_count(void);
void mr_signals_forget(void);

/* Those that come wait for mr_signals_release(). */
void mr_signals_hold(void);
void mr_signals_release(void);
void mr_signals_give_back(void);
/* 0: to nobody. */
void mr_signals_pass_to(pid_t pid);

#endif
