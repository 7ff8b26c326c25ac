#include "common/simt/runtime/remote/foreseen.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/memory/space/names.h"
#include "common/simt/runtime/remote/numbers.h"
#include "common/simt/runtime/remote/posts.h"

struct foreseen *foreseen_create(const struct packet *hello, bool controls) {
    bool several = hello->thread > 1; /* devices: work goes on when its call has returned */
    struct foreseen *made = several ? NULL : calloc(1, sizeof *made);
    if (made != NULL) {
        packet_begin(&made->posts, PACKET_POSTS);
        known_add(&made->window, hello->address, hello->bytes);
        made->controls = controls;
    }
    return made;
}

void foreseen_free(struct foreseen *foreseen) {
    if (foreseen != NULL) {
        known_clear(&foreseen->window);
        known_clear(&foreseen->memory);
        known_clear(&foreseen->streams);
        free(foreseen);
    }
}

/* ---- Arguments, as stubs.c puts them ---- */

/** What a call was sent with, read again. */
struct reader {
    const unsigned char *data;
    size_t at, size;
};

static struct reader read_call(const struct call *call) {
    return (struct reader){.data = call->packet.data, .size = call->packet.size};
}

/** @return the next number of @p bytes bytes; 0 where there is none */
static uint64_t read_number(struct reader *reader, size_t bytes) {
    uint64_t number = 0;
    if (bytes <= reader->size - reader->at) {
        memcpy(&number, reader->data + reader->at, bytes);
        reader->at += bytes;
    }
    return number;
}

static uint64_t read_pointer(struct reader *reader) {
    return read_number(reader, sizeof(void *));
}

/* ---- What can be foreseen ---- */

static bool has_stream(const struct foreseen *f, uint64_t stream) {
    return stream <= (uint64_t)(uintptr_t)cudaStreamPerThread || known_has(&f->streams, stream);
}

/** To memory of the device, from host memory that travels with the call. */
static bool copy_succeeds(const struct foreseen *f, const struct call *call, bool has_a_stream) {
    struct reader reader = read_call(call);
    uint64_t to = read_pointer(&reader);
    (void)read_pointer(&reader);
    uint64_t bytes = read_pointer(&reader);
    uint64_t kind = read_number(&reader, sizeof(enum cudaMemcpyKind));
    uint64_t stream = has_a_stream ? read_pointer(&reader) : 0;
    return kind == cudaMemcpyHostToDevice && bytes > 0 && call->from != NULL &&
           call->packet.extra == bytes && known_holds(&f->memory, to, bytes) &&
           has_stream(f, stream);
}

static bool set_succeeds(const struct foreseen *f, const struct call *call, bool has_a_stream) {
    struct reader reader = read_call(call);
    uint64_t to = read_pointer(&reader);
    (void)read_number(&reader, sizeof(int));
    uint64_t bytes = read_pointer(&reader);
    uint64_t stream = has_a_stream ? read_pointer(&reader) : 0;
    return bytes > 0 && known_holds(&f->memory, to, bytes) && has_stream(f, stream);
}

static bool free_succeeds(const struct foreseen *f, const struct call *call) {
    struct reader reader = read_call(call);
    return known_has(&f->memory, read_pointer(&reader));
}

static bool wait_succeeds(const struct foreseen *f, const struct call *call) {
    struct reader reader = read_call(call);
    return has_stream(f, read_pointer(&reader));
}

/** Whether memory of that name is there only messages show. */
static bool name_is_taken(const struct foreseen *f, const struct call *call) {
    char name[64] = "";
    struct reader reader = read_call(call);
    uint64_t pointer = read_pointer(&reader);
    bool there = read_number(&reader, sizeof(bool)) != 0;
    uint64_t length = there ? read_number(&reader, sizeof(uint32_t)) : 0;
    if (length >= sizeof name || length > reader.size - reader.at) {
        return false;
    }
    memcpy(name, reader.data + reader.at, length);
    return simt_name_is_good(name) && known_holds(&f->window, pointer, 1);
}

static bool succeeds(const struct foreseen *f, const struct call *call) {
    switch (call->packet.call) {
    case CALL_simt_add_kernel: /* nobody looks at the answer */
    case CALL_simt_add_variable:
        return true;
    case CALL_simt_ask_name:
        return name_is_taken(f, call);
    case CALL_cudaMemcpy:
    case CALL_cudaMemcpyAsync:
        return f->settled && copy_succeeds(f, call, call->packet.call == CALL_cudaMemcpyAsync);
    case CALL_cudaMemset:
    case CALL_cudaMemsetAsync:
        return f->settled && set_succeeds(f, call, call->packet.call == CALL_cudaMemsetAsync);
    case CALL_cudaFree:
        return f->settled && free_succeeds(f, call);
    case CALL_cudaStreamSynchronize:
        return f->settled && wait_succeeds(f, call);
    case CALL_cudaDeviceSynchronize:
        return f->settled;
    default:
        return false;
    }
}

/** Brings what travels with the call behind its arguments. Reading it may fault, and what handles
 *  that may make calls. */
static bool bring(struct call *call) {
    struct packet *packet = &call->packet;
    if (packet->extra > PACKET_BYTES - packet->size) {
        return false;
    }
    if (packet->extra > 0) {
        memcpy(packet->data + packet->size, call->from, packet->extra);
    }
    return true;
}

bool foreseen_take(struct foreseen *foreseen, struct call *call) {
    if (!posts_allow(call->packet.call) || !succeeds(foreseen, call) || !bring(call) ||
        !succeeds(foreseen, call) || !posts_add(&foreseen->posts, &call->packet)) {
        return false;
    }
    if (call->packet.call == CALL_cudaFree) {
        struct reader reader = read_call(call);
        (void)known_remove(&foreseen->memory, read_pointer(&reader));
    }
    return true;
}

/* ---- What answers teach ---- */

/** A pointer's target in the arguments: whether there is one, and it. */
static bool read_target(struct reader *reader, uint64_t *target) {
    bool there = read_number(reader, 1) != 0;
    *target = there ? read_pointer(reader) : 0;
    return there;
}

static void learn_memory(struct foreseen *f, struct reader asked, struct reader told) {
    uint64_t before;
    if (read_target(&asked, &before)) {
        known_add(&f->memory, read_pointer(&told), read_pointer(&asked));
    }
}

static void learn_success(struct foreseen *f, uint32_t number, struct reader asked,
                          struct reader told) {
    switch (number) {
    case CALL_cudaMalloc:
        learn_memory(f, asked, told);
        break;
    case CALL_cudaStreamCreate:
    case CALL_cudaStreamCreateWithFlags:
    case CALL_cudaStreamCreateWithPriority:
        if (!f->controls) {
            known_add(&f->streams, read_pointer(&told), 1);
        }
        break;
    default:
        break;
    }
}

void foreseen_learn(struct foreseen *foreseen, const struct call *call,
                    const struct packet *reply) {
    struct reader asked = {.data = call->asked, .size = sizeof call->asked};
    struct reader told = {.data = reply->data, .size = reply->size};
    foreseen->settled = (reply->flags & PACKET_SETTLED) != 0;
    switch (reply->call) { /* whether it went well or not: then it is asked again next time */
    case CALL_cudaFree:
    case CALL_cudaFreeAsync:
        (void)known_remove(&foreseen->memory, read_pointer(&asked));
        break;
    case CALL_cudaStreamDestroy:
        (void)known_remove(&foreseen->streams, read_pointer(&asked));
        break;
    case CALL_cudaDeviceReset:
        known_clear(&foreseen->memory);
        known_clear(&foreseen->streams);
        break;
    default:
        break;
    }
    if (reply->error == cudaSuccess) {
        learn_success(foreseen, reply->call, asked, told);
    }
}
