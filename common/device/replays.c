#include "common/device/replays.h"

#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/device/fail.h"

/* A key that was seen, and its graph from the second time on. */
struct replay {
    void *key; /* NULL: a free place */
    size_t key_bytes;
    cudaGraphExec_t graph; /* NULL: seen once */
    uint64_t used;         /* the call that used it last */
};

struct replays {
    size_t most;
    uint64_t calls;
    struct replay_counts counts;
    struct replay list[]; /* (most) */
};

enum status replays_create(struct replays **replays, size_t most, struct error *error) {
    *replays = calloc(1, sizeof **replays + most * sizeof *(*replays)->list);
    if (*replays == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for recorded work");
    }
    (*replays)->most = most;
    return STATUS_OK;
}

static void forget(struct replays *r, struct replay *replay) {
    if (replay->graph != NULL) {
        (void)cudaGraphExecDestroy(replay->graph);
        r->counts.kept--;
    }
    free(replay->key);
    *replay = (struct replay){0};
}

void replays_free(struct replays *r) {
    for (size_t i = 0; r != NULL && i < r->most; i++) {
        forget(r, &r->list[i]);
    }
    free(r);
}

struct replay_counts replays_counts(const struct replays *r) {
    return r->counts;
}

static struct replay *find(struct replays *r, const void *key, size_t bytes) {
    for (size_t i = 0; i < r->most; i++) {
        struct replay *at = &r->list[i];
        if (at->key != NULL && at->key_bytes == bytes && memcmp(at->key, key, bytes) == 0) {
            return at;
        }
    }
    return NULL;
}

/* Remembers a key, in a free place or in that of the key that was used longest ago. */
static enum status remember(struct replays *r, const void *key, size_t bytes, struct error *error) {
    struct replay *place = &r->list[0];
    for (size_t i = 1; i < r->most; i++) {
        place = r->list[i].used < place->used ? &r->list[i] : place; /* free: 0 */
    }
    void *copy = malloc(bytes);
    if (copy == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for recorded work");
    }
    memcpy(copy, key, bytes);
    forget(r, place);
    *place = (struct replay){.key = copy, .key_bytes = bytes, .used = r->calls};
    return STATUS_OK;
}

/* Ends the recording also when the work fails, and clears the error that this leaves. */
static enum status record(replay_work *work, const void *argument, device_stream stream,
                          cudaGraph_t *graph, struct error *error) {
    cudaError_t code = cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    if (code != cudaSuccess) {
        return device_fail(error, code, "beginning to record launches");
    }
    enum status status = work(argument, stream, error);
    code = cudaStreamEndCapture(stream, graph);
    if (status != STATUS_OK) {
        (void)cudaGetLastError();
        return status;
    }
    return code == cudaSuccess ? STATUS_OK : device_fail(error, code, "recording launches");
}

static enum status instantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                               struct error *error) {
    cudaError_t code = cudaGraphInstantiate(executable, graph, 0);
    return code == cudaSuccess ? STATUS_OK : device_fail(error, code, "making a graph of launches");
}

/* Records on a stream of its own: the caller's may be the default one, which cannot record. */
static enum status make(struct replays *r, struct replay *replay, replay_work *work,
                        const void *argument, struct error *error) {
    device_stream stream = NULL;
    cudaGraph_t graph = NULL;
    TRY(device_stream_create(&stream, error));
    enum status status = record(work, argument, stream, &graph, error);
    if (status == STATUS_OK) {
        status = instantiate(&replay->graph, graph, error);
    }
    if (graph != NULL) {
        (void)cudaGraphDestroy(graph);
    }
    device_stream_destroy(stream);
    if (status == STATUS_OK) {
        r->counts.recorded++;
        r->counts.kept++;
    }
    return status;
}

static enum status launch(struct replays *r, const struct replay *replay, device_stream stream,
                          struct error *error) {
    cudaError_t code = cudaGraphLaunch(replay->graph, stream);
    r->counts.launched++;
    return code == cudaSuccess ? STATUS_OK : device_fail(error, code, "launching a graph");
}

static enum status is_recording(device_stream stream, bool *recording, struct error *error) {
    enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
    cudaError_t code = cudaStreamIsCapturing(stream, &state);
    *recording = state != cudaStreamCaptureStatusNone;
    return code == cudaSuccess ? STATUS_OK : device_fail(error, code, "looking at a stream");
}

enum status replays_run(struct replays *r, const void *key, size_t key_bytes, replay_work *work,
                        const void *argument, device_stream stream, struct error *error) {
    bool recording = false;
    TRY(is_recording(stream, &recording, error));
    if (recording) {
        return work(argument, stream, error);
    }
    struct replay *replay = find(r, key, key_bytes);
    r->calls++;
    if (replay == NULL) {
        TRY(remember(r, key, key_bytes, error));
        return work(argument, stream, error);
    }
    replay->used = r->calls;
    if (replay->graph == NULL) {
        TRY(make(r, replay, work, argument, error));
    }
    return launch(r, replay, stream, error);
}
