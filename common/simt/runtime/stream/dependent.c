#include "common/simt/runtime/stream/dependent.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/stream.h"

void dependent_forget(struct CUstream_st *stream) {
    simt_primary_free(stream->primaries);
    stream->primaries = NULL;
}

void dependent_forget_all(struct runtime *runtime) {
    for (struct CUstream_st *s = runtime->streams; s != NULL; s = s->next) {
        dependent_forget(s);
    }
    for (int d = 0; d < runtime->settings.devices; d++) {
        struct CUstream_st *by_default = stream_default(runtime, d);
        if (by_default != NULL) {
            dependent_forget(by_default);
        }
    }
}

/* Kernels that say something of dependent launches may be followed by one; and any, once the
 * program has made one. */
static bool is_followed(const struct runtime *runtime, const struct kernel_work *work) {
    enum simt_check check = runtime->settings.check;
    return (check & SIMT_CHECK_STREAMS) != 0 && (check & SIMT_CHECK_ACCESSES) != 0 &&
           (runtime->order.has_dependent || work->kernel->info.controls_grids);
}

void dependent_begin(struct runtime *runtime, const struct kernel_work *work, bool graph,
                     struct simt_launch *launch) {
    struct CUstream_st *stream = runtime->order.stream;
    if (graph || !work->dependent) {
        dependent_forget(stream);
    }
    runtime->order.has_dependent = runtime->order.has_dependent || work->dependent;
    if (!graph && is_followed(runtime, work)) {
        launch->trace = simt_trace_create();
    }
    if (launch->trace != NULL) { /* its own from now on: a host may wait while it runs */
        launch->primaries = stream->primaries;
        stream->primaries = NULL;
    }
}

void dependent_drop(struct simt_launch *launch) {
    simt_primary_free(launch->primaries);
    launch->primaries = NULL;
}

void dependent_end(struct runtime *runtime, const struct kernel_work *work,
                   struct simt_launch *launch) {
    struct CUstream_st *stream = runtime->order.stream;
    struct simt_primary *primary = launch->trace != NULL ? calloc(1, sizeof *primary) : NULL;
    if (primary == NULL || launch->trace->has_waited) {
        dependent_drop(launch);
    }
    if (primary == NULL) {
        dependent_forget(stream);
        simt_trace_free(launch->trace);
        return;
    }
    *primary = (struct simt_primary){.trace = launch->trace,
                                     .name = strdup(work->kernel->readable),
                                     .sites = launch->sites->sites,
                                     .module = launch->sites->module,
                                     .next = launch->primaries};
    launch->sites->sites = NULL;
    dependent_forget(stream);
    stream->primaries = primary;
}
