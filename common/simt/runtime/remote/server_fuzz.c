/*
 * Fuzzes the device's end of the connection: whatever a program sends, packets of all kinds in any
 * order, the device answers or closes, and goes on. Compiled with sanitizers, as all fuzz targets.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/simt/runtime/remote/client.h"
#include "common/simt/runtime/remote/numbers.h"
#include "common/simt/runtime/remote/posts.h"
#include "common/simt/runtime/remote/server.h"
#include "common/simt/runtime/state.h"
#include "common/testing/fuzz.h"

/* A part of an input: the beginning of a packet's head, then its data. */
struct opening {
    uint8_t kind, call, attached, unused;
    uint32_t address;
};

/* The call without an answer, and again with one. */
static enum status send_posted(int socket, struct packet *packet, const void *attached) {
    struct packet *posts = malloc(sizeof *posts);
    fuzz_require(posts != NULL);
    packet_begin(posts, PACKET_POSTS);
    packet->kind = PACKET_CALL;
    memcpy(packet->data + packet->size, attached, packet->extra);
    bool fits = posts_add(posts, packet);
    enum status status = packet_send_behind(socket, fits ? posts : NULL, packet, attached);
    free(posts);
    return status;
}

static void send_part(int socket, const struct fuzz_input *part, struct packet *packet) {
    struct opening opening = {0};
    size_t head = part->size < sizeof opening ? part->size : sizeof opening;
    size_t size = part->size - head < PACKET_BYTES ? part->size - head : PACKET_BYTES;
    memcpy(&opening, part->data, head);
    packet_begin(packet, (enum packet_kind)opening.kind);
    packet->call = opening.call;
    packet->address = opening.address;
    packet->bytes = opening.address;
    packet->extra = opening.attached < size ? opening.attached : 0;
    (void)packet_put(packet, part->data + head, size - packet->extra);
    const void *attached = part->data + part->size - packet->extra;
    enum status status = opening.kind == PACKET_POSTS ? send_posted(socket, packet, attached)
                                                      : packet_send(socket, packet, attached);
    (void)status; /* the device has closed */
}

/* The program: sends all of it, takes whatever comes. */
struct feeder {
    int socket;
    struct fuzz_input input;
};

static void *feed(void *argument) {
    struct feeder *f = argument;
    struct packet *packet = malloc(sizeof *packet);
    struct fuzz_input part;
    fuzz_require(packet != NULL);
    while (fuzz_take(&f->input, &part)) {
        send_part(f->socket, &part, packet);
        while (recv(f->socket, packet, sizeof *packet, MSG_DONTWAIT) > 0) {
        }
    }
    shutdown(f->socket, SHUT_WR);
    while (recv(f->socket, packet, sizeof *packet, 0) > 0) {
    }
    free(packet);
    return NULL;
}

static struct server *the_server(void) {
    static struct server server;
    if (server.runtime == NULL) {
        setenv("SIMT_CHECK", "off", 1);
        setenv("SIMT_THREADS", "1", 1);
        server.runtime = runtime_enter();
        runtime_unlock(server.runtime);
        fuzz_require(server_prepare(&server));
        server.runtime->program = &server.program;
    }
    return &server;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct server *server = the_server();
    enum { BETWEEN_RESETS = 64 };
    static unsigned inputs;
    int ends[2];
    pthread_t thread;
    fuzz_require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    struct feeder feeder = {.socket = ends[1], .input = {data, size}};
    fuzz_require(pthread_create(&thread, NULL, feed, &feeder) == 0);
    while (server_serve(server, ends[0], false)) {
    }
    close(ends[0]);
    pthread_join(thread, NULL);
    close(ends[1]);
    if (++inputs % BETWEEN_RESETS == 0) {
        (void)cudaDeviceReset(); /* takes longer than all else */
    }
    return 0;
}

static void add_call(unsigned char **seed, size_t *size, enum packet_kind kind, uint8_t call,
                     const void *data, size_t bytes) {
    unsigned char part[sizeof(struct opening) + 128] = {(unsigned char)kind, call};
    memcpy(part + sizeof(struct opening), data, bytes);
    fuzz_append(seed, size, part, sizeof(struct opening) + bytes);
}

/* Calls with arguments of zeros and of ones, some in a row; before them a few that go
   well. */
bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    enum { BYTES = 120, FORMS = 2, ROW = 16 };
    static const uint8_t GOOD[] = {CALL_cudaMalloc,      CALL_cudaStreamCreate,
                                   CALL_cudaGraphCreate, CALL_cudaEventCreate,
                                   CALL_cudaMallocHost,  CALL_cudaMemset};
    unsigned char arguments[BYTES];
    *seed = NULL;
    *size = 0;
    size_t first = index / FORMS * ROW;
    if (first >= CALL_COUNT) {
        return false;
    }
    memset(arguments, (int)(index % FORMS), sizeof arguments);
    for (size_t i = 0; i < sizeof GOOD && index % FORMS == 1; i++) {
        add_call(seed, size, PACKET_CALL, GOOD[i], arguments, 9);
    }
    for (size_t i = first; i < first + ROW && i < CALL_COUNT; i++) {
        enum packet_kind kind = posts_allow((uint32_t)i) ? PACKET_POSTS : PACKET_CALL;
        add_call(seed, size, kind, (uint8_t)i, arguments, sizeof arguments);
    }
    return true;
}
