/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the threads of the subject record: event n of a stream is an enter (n even) or an
 * exit (n odd) of the span named "s0", "s1", ...: number n / 2 modulo PATTERN_SPANS. So
 * each event that is read tells whether it stands where it belongs.
 */
#ifndef MR_TESTS_SYSTEM_RECORDER_PATTERN_H
#define MR_TESTS_SYSTEM_RECORDER_PATTERN_H

#define PATTERN_SPANS 97

#endif
