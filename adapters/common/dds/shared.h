/* What the DDS adapters have in common, for adapters that are not in C++: options, the names that keep runs
 * apart, priorities of threads, and what is told of writers and readers.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RTMETER_DDS_SHARED_H
#define RTMETER_DDS_SHARED_H

#include <stddef.h>
#include <stdint.h>

#include "rtmeter/adapter.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rtm_dds rtm_dds;

/* The common options, for `rtmeter adapters`. lacks: those that the implementation has not, separated by
 * commas: loan, peers, and names where threads have none to tell them apart. */
void rtm_dds_describe_static(rtm_sink* sink, const char* lacks);

/* Reads the run's options; threads that come from now on are the middleware's. transports: the choices, the
 * default first; networkless: those of them that use no interface of ours. */
int rtm_dds_open(const rtm_run* run, const char* transports, const char* networkless, const char* lacks,
                 rtm_dds** dds, rtm_error* error);
void rtm_dds_close(rtm_dds* dds);

/* Seconds of the lease and deadline that must be finite (options.hpp). */
int32_t rtm_dds_lease_s(void);

/* Strings live until rtm_dds_close(). */
const char* rtm_dds_interface_name(const rtm_dds* dds);    /* empty: the transport uses none of ours */
const char* rtm_dds_interface_address(const rtm_dds* dds); /* IPv4 */
uint32_t rtm_dds_domain(const rtm_dds* dds);
int rtm_dds_listener(const rtm_dds* dds);
/* Until the next call. */
const char* rtm_dds_topic_name(rtm_dds* dds, const char* topic);

/* Sets what option threads asks for, of the threads that are there. */
int rtm_dds_enforce_threads(rtm_dds* dds, rtm_error* error);

/* A writer or reader; its policies as they were read back; then how many others it matched, and the id of
 * the policy that kept one from matching, or 0. */
void rtm_dds_add_end(rtm_dds* dds, const char* name);
void rtm_dds_add_policy(rtm_dds* dds, const char* policy, const char* value);
void rtm_dds_add_matches(rtm_dds* dds, size_t matched, uint32_t incompatible_policy);
/* Puts options, threads, and the ends added, which it then forgets. */
void rtm_dds_describe(rtm_dds* dds, int other_participants, rtm_sink* sink);

#ifdef __cplusplus
}
#endif
#endif /* RTMETER_DDS_SHARED_H */
