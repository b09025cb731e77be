/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a lane's output says when it is merged, as lines (support_text.h). Windows are s after TEST_START_S.
 *
 *     path f1/f2 @W = ok failed incomplete self=sum,min,max total=sum,min,max hist=zeros;scale;first;c,c,...
 *     path (f9)/(f8) @W = ...                              outer frames in brackets
 *     shape f1 @W f1{f2 f3{f4}} = ok failed calls folded first last time=... hist=...      first, last: ns after the start
 *     entry f1 @W = traces,calls,ns (whole) ... (folded) ... (paths) ... (incomplete)
 *     ledger STREAM = last reduced held lost:reason,...
 *     counter NAME = value
 *     outer f1 why
 *     source state=S
 *     open f1 = count                                      of the last delta that told any
 *     exemplar f1 WHY f1{f2} = status stream before start calls: depth f1 start+total flags-elided calls,ns; ...
 *                                                          the best of all deltas; why: 1 first, 2 slowest; shape - if none
 *     shape path f1{f2} f1/f2 = ok failed self=sum,min,max total=sum,min,max
 *
 * A child of an exact shape carries xN; the children of a set are sorted by text.
 */
#ifndef MR_TESTS_UNIT_PIPELINE_SUPPORT_MODEL_H
#define MR_TESTS_UNIT_PIPELINE_SUPPORT_MODEL_H

#include "support_lane.h"
#include "support_text.h"

/* Checks on the way: nothing is used before it was told; deltas and items are sound. */
void test_model(const struct test_lane *lane, struct test_text *text);

#endif
