/**
 * @file sabotage_channel.h
 * @brief Of sabotage_timed.h: by which way a result of the CPU travels.
 */
#ifndef WARPBOOK_GRADER_SELFTEST_SABOTAGE_CHANNEL_H_
#define WARPBOOK_GRADER_SELFTEST_SABOTAGE_CHANNEL_H_

#include "grader/selftest/channels.h"
#include "grader/selftest/sabotage_timed.h"

/** @return an enum channel; -1: this mistake is none of them */
static inline int sabotage_channel(void) {
    static const struct {
        enum mistake mistake;
        enum channel channel;
    } ways[] = {{MISTAKE_by_arguments, CHANNEL_ARGUMENTS},
                {MISTAKE_by_array, CHANNEL_ARRAY},
                {MISTAKE_by_constants, CHANNEL_CONSTANTS},
                {MISTAKE_by_graph, CHANNEL_GRAPH},
                {MISTAKE_by_host_function, CHANNEL_HOST_FUNCTION},
                {MISTAKE_by_managed, CHANNEL_MANAGED},
                {MISTAKE_by_mapped, CHANNEL_MAPPED},
                {MISTAKE_by_registered, CHANNEL_REGISTERED}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (ways[i].mistake == chosen_mistake()) {
            return (int)ways[i].channel;
        }
    }
    return -1;
}

/** Sends what the CPU has computed, "host" by a copy; waits for the stream. */
static inline enum status sabotage_send(void *to, const void *from, size_t bytes,
                                        device_stream stream, struct error *error) {
    int channel = sabotage_channel();
    TRY(channel >= 0 ? channel_send((enum channel)channel, to, from, bytes, stream, error)
                     : device_write(to, from, bytes, stream, error));
    return device_synchronize(stream, error);
}

#endif
