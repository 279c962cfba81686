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

/* What the options are for this implementation. Lists are separated by commas. */
typedef struct rtm_dds_options {
  const char* transports; /* the default first */
  const char* transport_about;
  const char* threads_about;
  const char* lacks; /* what it has not: loan, peers, and names where threads have none to tell them apart */
} rtm_dds_options;

/* The options and ways to receive, for `rtmeter adapters`. */
void rtm_dds_describe_static(rtm_sink* sink, const rtm_dds_options* of);

/* Reads the run's options; threads that come from now on are the middleware's. networkless: those of the
 * transports that use no interface of ours. */
int rtm_dds_open(const rtm_run* run, const rtm_dds_options* of, const char* networkless, rtm_dds** dds,
                 rtm_error* error);
void rtm_dds_close(rtm_dds* dds);

/* Seconds of the lease and deadline that must be finite to match other implementations (options.hpp), or 0
 * where none has to. */
int32_t rtm_dds_lease_s(const rtm_dds* dds);

/* Strings live until rtm_dds_close(). */
const char* rtm_dds_interface_name(const rtm_dds* dds); /* empty: the transport uses none of ours */
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
