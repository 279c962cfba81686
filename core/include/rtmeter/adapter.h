/* The adapter contract: what a middleware gives rtmeter so that it can be measured.
 *
 * C99 and C++ alike. An adapter fills one rtm_adapter table; the probe's main() is one call of
 * rtm_probe_main(). The core owns time: it stamps, schedules and records. An adapter only makes
 * timers, publishes, receives and spins, and never reads a clock to measure.
 *
 * Functions marked [setup] run before or after the measured window: they may allocate, block and
 * fail; a failure fills *error (field, value, message, remedy) and returns non-zero. Functions marked
 * [measured path] return non-zero on failure but neither throw, log nor block anywhere but in the
 * middleware itself. C++ adapters derive from rtmeter::Adapter (adapter.hpp) instead.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RTMETER_ADAPTER_H
#define RTMETER_ADAPTER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RTM_ADAPTER_ABI 7

/* A time or value that the middleware does not give. */
#define RTM_ABSENT INT64_MIN

/* What a [measured path] function returns when the middleware is gone for good: it ends the run. What
 * describe() then puts as `broken` says why. */
#define RTM_BROKEN (-2)

/* Sequence number of the messages by which a client finds its server before measuring. */
#define RTM_SEQUENCE_HELLO UINT64_MAX

typedef struct rtm_error {
  char field[64];    /* option or setting at fault, e.g. "option transport" */
  char value[128];   /* the value it had */
  char message[384]; /* what is wrong */
  char remedy[384];  /* what to do about it */
} rtm_error;

typedef enum rtm_measurement {
  RTM_WAKEUP = 0,
  RTM_TIMER = 1,
  RTM_ROUNDTRIP = 2,
  RTM_CYCLE = 3,
  RTM_REQUEST = 4,
  RTM_CHAIN = 5,
  RTM_DISCOVERY = 6
} rtm_measurement;
/* RTM_ROLE_BESIDE: a further process beside the two ends of a round trip, which only an adapter that puts
 * beside gets; where the client is told an endpoint, it is told the same. */
typedef enum rtm_role {
  RTM_ROLE_SINGLE = 0,
  RTM_ROLE_CLIENT = 1,
  RTM_ROLE_SERVER = 2,
  RTM_ROLE_BESIDE = 3
} rtm_role;
typedef enum rtm_reliability { RTM_BEST_EFFORT = 0, RTM_RELIABLE = 1 } rtm_reliability;
typedef enum rtm_overrun { RTM_CATCH_UP = 0, RTM_SKIP = 1 } rtm_overrun;
typedef enum rtm_timer_mode { RTM_ONE_SHOT = 0, RTM_PERIODIC = 1 } rtm_timer_mode;
typedef enum rtm_drive { RTM_SPIN = 0, RTM_SLEEP_THEN_SPIN_SOME = 1, RTM_POLL = 2 } rtm_drive;
/* The threads that the two components of a cycle run on: one for both, or one each. */
typedef enum rtm_components { RTM_ONE_THREAD = 0, RTM_TWO_THREADS = 1 } rtm_components;

/* How the callbacks of messages are reached. */
typedef enum rtm_receive {
  RTM_RECEIVE_SPIN = 0, /* spin(), on a thread of its own: the executor's or wait-set's blocking spin */
  RTM_RECEIVE_SPIN_ONCE = 1, /* wait(), one after the other */
  RTM_RECEIVE_LISTENER = 2, /* a thread of the middleware's calls back; nobody waits */
  RTM_RECEIVE_POLL = 3, /* spin_some(), all the time */
  RTM_RECEIVE_CALL = 4 /* a client's call() itself: it blocks until the reply has come (RTM_REQUEST) */
} rtm_receive;

/* What a request goes over: a service is called, an action is given a goal. */
typedef enum rtm_interface { RTM_SERVICE = 0, RTM_ACTION = 1 } rtm_interface;

/* What comes back for a request. */
typedef enum rtm_reply {
  RTM_RESULT = 0,   /* the service's response, the action's result: the last */
  RTM_ACCEPTED = 1, /* the goal was accepted; without a payload */
  RTM_FEEDBACK = 2  /* of the action, before the result; without a payload */
} rtm_reply;

/* The two ends of a topic. */
typedef enum rtm_end { RTM_PUBLISHER = 0, RTM_SUBSCRIBER = 1 } rtm_end;

/* Which release a periodic timer's callback serves when the middleware does not report it. */
typedef enum rtm_ticks {
  RTM_EVERY_TICK = 0, /* the n-th callback serves release n, however late */
  RTM_JUMPS = 1 /* missed ticks are passed over: a callback serves the latest release passed */
} rtm_ticks;

typedef struct rtm_option {
  const char* key;
  const char* value;
} rtm_option;

/* What the adapter may need to know of the run. Strings live until stop(). Read an option with
 * rtm_option_or(): the probe refuses options that no adapter code asked for. */
typedef struct rtm_run {
  rtm_measurement measurement;
  rtm_role role;
  rtm_drive drive; /* RTM_TIMER and RTM_CYCLE */
  rtm_receive receive; /* RTM_ROUNDTRIP, RTM_REQUEST, RTM_CYCLE, RTM_CHAIN and RTM_DISCOVERY (spin_once) */
  rtm_timer_mode timer_mode; /* RTM_TIMER only */
  int64_t period_ns; /* one-shot: the timeout */
  uint32_t payload_bytes; /* largest message to come */
  rtm_reliability reliability;
  uint32_t history_depth; /* KEEP_LAST depth: a queue that is full drops its oldest; 1 where nobody asked */
  const char* session; /* unique to the run: derive topics, ports, domains from it */
  int32_t overrun_asked; /* rtm_overrun, or -1: the adapter's own default */
  const rtm_option* options;
  size_t option_count;
  int32_t components_asked;     /* RTM_CYCLE: rtm_components, or -1: the adapter's own default */
  /* history_depth if the user gave it, or -1. Where the middleware has no KEEP_LAST (a full queue drops or
   * refuses what is new, as a high-water mark does) a depth of 1 loses most messages: take the middleware's
   * own default unless asked, and put what is in effect as qos.history and qos.depth. */
  int32_t history_depth_asked;
  rtm_interface interface; /* RTM_REQUEST */
  /* RTM_ROUNDTRIP: how many subscribers and publishers topic ping has, the server and the client among them:
   * 1 each unless something is beside. Both ends are told of both, a further subscriber of publishers. */
  int32_t subscribers;
  int32_t publishers;
} rtm_run;

/* The option's value, or otherwise when it was not given. [setup] */
const char* rtm_option_or(const rtm_run* run, const char* key, const char* otherwise);

/* Fills *error (longer texts are cut) and returns -1, so that an adapter can `return rtm_fail(…)`. */
int rtm_fail(rtm_error* error, const char* field, const char* value, const char* message, const char* remedy);

/* Where describe() puts what it knows: keys and values as text. Repeat a key to make a list. */
typedef struct rtm_sink {
  void (*put)(struct rtm_sink* sink, const char* key, const char* value);
} rtm_sink;

typedef struct rtm_message {
  uint64_t sequence;
  const uint8_t* data; /* bytes of the payload; the core's, valid during the call only */
  uint32_t bytes;
} rtm_message;

/* What a timer callback knows. Times in the middleware's words, or RTM_ABSENT. */
typedef struct rtm_fire {
  int64_t reported_expected_ns;
  int64_t reported_actual_ns;
} rtm_fire;

/* The core's callbacks. Call them first thing in the middleware's own callback: the core's first
 * statement is the stamp. They may come on a thread of the middleware's, one at a time for a handle; a
 * wait() under way then returns. */
typedef void (*rtm_on_fire)(void* user, const rtm_fire* fire);
typedef void (*rtm_on_message)(void* user, const rtm_message* message);
/* Of a client, with the sequence number of the request that it belongs to. */
typedef void (*rtm_on_reply)(void* user, rtm_reply what, const rtm_message* message);
/* With how many ends of other participants the node's publisher (subscriber) is matched now. */
typedef void (*rtm_on_match)(void* user, rtm_end end, int32_t others);
/* When the kernel had a message, by CLOCK_REALTIME: of one that is published (RTM_PUBLISHER), from within
 * publish(), when a driver took it; of one that has come (RTM_SUBSCRIBER), just before on_message and on the
 * same thread, when a driver handed it over. What the kernel does not tell is left out. [measured path] */
typedef void (*rtm_on_stamp)(void* user, rtm_end end, int64_t realtime_ns);

typedef struct rtm_timer_spec {
  rtm_timer_mode mode;
  int64_t period_ns; /* period, or the one-shot's timeout */
  rtm_on_fire on_fire;
  void* user;
} rtm_timer_spec;

/* What create_timer() says of the timer it made. */
typedef struct rtm_timer_traits {
  rtm_ticks ticks;
  rtm_overrun overrun; /* what the timer does with ticks that were missed */
  int32_t reports_monotonic; /* 1: reported times are CLOCK_MONOTONIC (or the scripted clock) */
} rtm_timer_traits;

/* Handles are the adapter's own pointers; `self` is what start() gave. The thread that calls start() and
 * creates everything is also the one that arms and spins; in a round trip, and where requests are sent, a
 * client's replies may be received by a second thread, which spins (receive spin), waits or polls (in flight
 * open) while the first publishes or calls.
 * An adapter that puts second_topic lets one more thread
 * publish, on a publisher of its own (same_node), or be started a second time in the process, by another
 * thread, and stopped before the first (same_process).
 *
 * In a chain a process has one stage or more, each a node with a publisher and a subscriber for each stage
 * that it hears; a topic is named as the stage that publishes on it, and may have any number of subscribers,
 * in this process or others. One thread publishes and waits. Processes are started in any order: until all
 * are there the core publishes RTM_SEQUENCE_HELLO again and again, which need not arrive.
 *
 * In a discovery (optional) what start() makes is a participant: a node, which is watched where the
 * middleware tells of matches, then a publisher and a subscriber on one topic that all participants share.
 * Its process starts and stops it again and again, from one thread.
 *
 * Beside the two ends of a round trip there can be further processes (optional, RTM_ROLE_BESIDE): a node with
 * a subscriber of topic ping, which the client then publishes to all of them; one with a publisher of it
 * (nodes publisher2, publisher3, ...), whose messages (sequence: its number in the bits from 40 on) nobody
 * answers; or a node alone. Until all subscribers have heard all publishers, these publish greetings again
 * and again, the client RTM_SEQUENCE_HELLO. On a scripted clock they are in the client's process.
 *
 * Where requests are sent (optional: adapters whose middleware has services), a client calls and a server
 * replies; topics and messages have no part in it. A server's on_request comes as on_message does, and the
 * core replies from within it. What a request's reply carries is as long as the request.
 *
 * In a round trip the core may ask for the kernel's stamps (optional: adapters that send and receive by
 * system calls of their own, or whose middleware tells).
 *
 * Keys that describe() should put: before start (self is NULL) name, version, middleware,
 * middleware_version, measures (one of wakeup, timer.one_shot, timer.periodic, roundtrip, request, cycle,
 * chain, discovery; the key repeated), matches (publisher, subscriber; repeated: the ends of whose matches a
 * discovery is told; left out: the middleware tells of none, and a discovery knows of first messages only),
 * interfaces (service, action; repeated: what requests can go over), drives.<measurement> (timer, cycle;
 * repeated, default first: where the middleware has a cyclic trigger of its own, spin is a cycle's),
 * receives.<measurement> (roundtrip, request, cycle, chain, discovery: spin, spin_once, listener, poll, and
 * of requests call; repeated, default first), components (one_thread, two_threads; repeated, default first:
 * what a cycle's can be asked to run on), kernel_stamps (roundtrip: tell_stamps can be asked there),
 * wire (what its messages are to other processes, a word such as dds: two adapters that name the same can be
 * the two ends of a round trip or request, two that name others cannot, and are refused; left out: nobody
 * knows, and nothing is refused), option.<key> (value: "a|b|c: what it is", default first); "server: inline"
 * when the client needs no server process, "same_host" when both must be on one host; inline.<option> and
 * same_host.<option> (repeated): its values with which that is so; second_topic (same_node, same_process;
 * repeated): where other traffic can be beside a round trip. beside (repeated): what can be beside the ends
 * of a round trip, subscribers, publishers, background_nodes, or, with a value of an option only,
 * "subscribers transport=topics". poll.<option> (repeated): its values with which messages are received by
 * polling only (receive poll); background (repeated): measurements in which threads of the middleware's must
 * run beside the measured one, "cycle" or, with these components or a value of an option only, "cycle
 * components=two_threads": a measured thread of real-time priority that polls leaves them no time on its CPU,
 * and that is refused. After start also endpoint (what a client in another process needs), qos.<policy>,
 * may_drop (feedback: where the middleware may drop that of every goal by its own ways), and whatever is in
 * effect. chosen (repeated): keys of what follows from the session alone, such as a domain, port or process
 * that nobody asked for; it tells no two runs apart. Where ends find each other by discovery: discovery (what
 * was looked for, where, and who was found), others (of a client: how many other participants or nodes it
 * knows) and incompatible_qos (the policy by which found ends do not match); a client that gets no answer is
 * asked once more and shows them. */
typedef struct rtm_adapter {
  uint32_t abi; /* RTM_ADAPTER_ABI */

  void (*describe)(const void* self, rtm_sink* sink); /* [setup] */

  /* The middleware's init. */
  int (*start)(const rtm_run* run, void** self, rtm_error* error); /* [setup] */
  /* Undoes start() and everything created; called once, also after an error. */
  void (*stop)(void* self); /* [setup] */

  /* A node, participant or component. */
  int (*create_node)(void* self, const char* name, void** node, rtm_error* error); /* [setup] */

  int (*create_timer)(void* node, const rtm_timer_spec* spec, void** timer, rtm_timer_traits* traits,
                      rtm_error* error); /* [setup] */
  /* Starts a periodic timer, or arms a one-shot (again). now_ns is the core's stamp just taken: an
   * adapter that can will count from it. A pending shot is replaced. */
  int (*arm)(void* timer, int64_t now_ns); /* [measured path] */

  int (*create_publisher)(void* node, const char* topic, void** publisher, rtm_error* error); /* [setup] */
  int (*create_subscriber)(void* node, const char* topic, rtm_on_message on_message, void* user,
                           void** subscriber, rtm_error* error); /* [setup] */
  int (*publish)(void* publisher, const rtm_message* message); /* [measured path] */

  /* The middleware's own blocking spin: dispatches until interrupt() or, where the middleware can,
   * until timeout_ns has passed (the core interrupts it in any case). With receive listener it dispatches
   * nothing, and only blocks. */
  int (*spin)(void* self, int64_t timeout_ns); /* [measured path] */
  /* Blocks until at least one callback ran or timeout_ns has passed. */
  int (*wait)(void* self, int64_t timeout_ns); /* [measured path] */
  /* Dispatches what is ready; does not block. */
  int (*spin_some)(void* self); /* [measured path] */
  /* Makes spin() and wait() return, from any thread and from within a callback. One that comes just
   * before spin() or wait() is called is not lost: that call returns at once. */
  void (*interrupt)(void* self);

  /* Requests; null where the middleware has none. A service or an action of that name, by run->interface. */
  int (*create_client)(void* node, const char* service, rtm_on_reply on_reply, void* user, void** client,
                       rtm_error* error); /* [setup] */
  int (*create_server)(void* node, const char* service, rtm_on_message on_request, void* user, void** server,
                       rtm_error* error); /* [setup] */
  /* Sends the request or the goal, and does not wait for what comes back; but with receive call it returns
   * when on_reply has had the result, or with non-zero when there will be none. */
  int (*call)(void* client, const rtm_message* request); /* [measured path] */
  /* From within on_request, to the request that it was called for: RTM_RESULT, in an action RTM_FEEDBACK
   * first. That a goal was accepted is the adapter's to tell: it accepts each before it calls on_request. */
  int (*reply)(void* server, rtm_reply what, const rtm_message* message); /* [measured path] */

  /* Discovery; null where the middleware tells of no matches, or not of how many. Of a node that has no ends
   * yet: from now on on_match is called whenever the middleware tells that the matches of one of its ends
   * have changed. */
  int (*watch)(void* node, rtm_on_match on_match, void* user, rtm_error* error); /* [setup] */

  /* The kernel's own stamps of messages; null where the middleware gives none. Of a node that has no ends
   * yet: from now on on_stamp is called. Fails where the kernel stamps no messages of this run's transport.
   */
  int (*tell_stamps)(void* node, rtm_on_stamp on_stamp, void* user, rtm_error* error); /* [setup] */
} rtm_adapter;

/* The probe: reads the command line, measures, writes log and status; returns the exit code. */
int rtm_probe_main(int argc, char** argv, const rtm_adapter* adapter);

#ifdef __cplusplus
}
#endif
#endif /* RTMETER_ADAPTER_H */
