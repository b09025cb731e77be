/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `millrace bench`: what tracing costs, measured on this machine; a room with a command
 * for each question.
 *
 *     return mr_bench_command(argc - 1, argv + 1);       // argv[0] is "bench"
 *
 * A new command: one line in the table of bench.c, its options in a .def beside it, its
 * results in a struct mr_results (bench/result.h), which makes JSON lines, tables and
 * chart alike for all. What commands share: stats.h (medians, intervals), machine.h
 * (stolen time, what the machine is), command.h (running programs), build.h (compiling
 * them), receiver.h and server.h (where events go), rounds.h (loops, interleaved).
 */
#ifndef MR_BENCH_BENCH_H
#define MR_BENCH_BENCH_H

/* 0, 1 when nothing could be measured, 2 for a mistake in the arguments, 130 after Ctrl-C. */
int mr_bench_command(int argc, char **argv);

/* The commands. */
int mr_bench_probe_command(int argc, char **argv);
int mr_bench_pipeline_command(int argc, char **argv);
int mr_bench_overhead_command(int argc, char **argv);
int mr_bench_chain_command(int argc, char **argv);

#endif
