/* The program whose call is served, as the implementation reaches it: by packets to and fro. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/simt/runtime/remote/server.h"
#include "common/simt/runtime/state.h"

static struct server *server_of(struct program *program) {
    return (struct server *)(void *)program; /* its first member */
}

static bool send_packet(struct server *server, const struct packet *packet, const void *attached) {
    if (server->broken || packet_send(server->socket, packet, attached) != STATUS_OK) {
        server->broken = true;
    }
    return !server->broken;
}

/** What was to travel with the answer goes before anything else that the program does. */
static bool send_tail(struct server *server) {
    struct packet *tail = server->tail;
    bool sent = tail->extra == 0 || send_packet(server, tail, tail->data);
    tail->extra = 0;
    return sent;
}

static bool send_request(struct server *server, enum packet_kind kind, const void *address,
                         uint64_t bytes) {
    struct packet *packet = server->between;
    packet_begin(packet, kind);
    packet->address = (uint64_t)(uintptr_t)address;
    packet->bytes = bytes;
    return send_tail(server) && send_packet(server, packet, NULL);
}

/** Serves calls that a host function makes until it returns. @return what it answers */
static uint64_t await_done(struct server *server) {
    while (!server->broken) {
        struct packet *packet = server->requests[server->depth];
        if (server_receive(server) != STATUS_OK) {
            break;
        }
        if (packet->kind == PACKET_DONE) {
            return packet->address;
        }
        if (packet->kind != PACKET_CALL || !server_call(server)) {
            break;
        }
    }
    server->broken = true;
    return 0;
}

/** @return true when the call brought the memory with it. */
static bool read_attached(const struct server *server, void *to, const void *from, size_t bytes) {
    const struct packet *call = server->requests[server->depth - 1];
    uint64_t offset = (uint64_t)(uintptr_t)from - call->address;
    if (call->extra == 0 || offset > call->extra || bytes > call->extra - offset) {
        return false;
    }
    memcpy(to, call->data + call->size + offset, bytes);
    return true;
}

/** Receives the memory that a PULL or a TAKE asked for. */
static bool receive_memory(struct server *server, void *to, size_t bytes) {
    struct packet *packet = server->between;
    for (size_t done = 0; done < bytes; done += packet->extra) {
        if (packet_receive_into(server->socket, packet, (char *)to + done, bytes - done) !=
                STATUS_OK ||
            (packet->kind != PACKET_DATA && packet->kind != PACKET_FAILED) ||
            (packet->kind == PACKET_DATA && packet->extra == 0)) {
            server->broken = true;
            return false;
        }
        if (packet->kind == PACKET_FAILED) {
            return false;
        }
    }
    return true;
}

static bool read_program(struct program *program, void *to, const void *from, size_t bytes) {
    struct server *server = server_of(program);
    if (bytes == 0 || read_attached(server, to, from, bytes)) {
        return true;
    }
    return send_request(server, PACKET_PULL, from, bytes) && receive_memory(server, to, bytes);
}

static bool take(struct program *program, void *to, const void *from, size_t bytes) {
    struct server *server = server_of(program);
    return send_request(server, PACKET_TAKE, from, bytes) && receive_memory(server, to, bytes);
}

static bool open_pages(struct program *program, void *memory, size_t bytes) {
    return send_request(server_of(program), PACKET_OPEN, memory, bytes);
}

static bool write_program(struct program *program, void *to, const void *from, size_t bytes) {
    struct server *server = server_of(program);
    struct packet *packet = server->between, *tail = server->tail;
    if (!send_tail(server)) {
        return false;
    }
    if (bytes <= PACKET_ATTACHED) {
        tail->address = (uint64_t)(uintptr_t)to;
        tail->extra = (uint32_t)bytes;
        memcpy(tail->data, from, bytes);
        return true;
    }
    for (size_t done = 0; done < bytes; done += packet->extra) {
        size_t left = bytes - done;
        packet_begin(packet, PACKET_PUSH);
        packet->address = (uint64_t)(uintptr_t)to + done;
        packet->extra = (uint32_t)(left < PACKET_BYTES ? left : PACKET_BYTES);
        if (!send_packet(server, packet, (const char *)from + done)) {
            return false;
        }
    }
    return true;
}

static void *allocate(struct program *program, size_t bytes) {
    enum { PAGE_BYTES = 4096 };
    struct server *server = server_of(program);
    uint64_t address = send_request(server, PACKET_ALLOCATE, NULL, bytes) ? await_done(server) : 0;
    return address % PAGE_BYTES == 0 ? (void *)(uintptr_t)address : NULL;
}

static void release(struct program *program, void *memory, size_t bytes) {
    (void)send_request(server_of(program), PACKET_RELEASE, memory, bytes);
}

static void call(struct program *program, cudaHostFn_t function, void *data) {
    struct server *server = server_of(program);
    if (send_request(server, PACKET_CALLBACK, (void *)(uintptr_t)function,
                     (uint64_t)(uintptr_t)data)) {
        (void)await_done(server);
    }
}

static void callback(struct program *program, cudaStreamCallback_t function, cudaStream_t stream,
                     cudaError_t error, void *data) {
    struct server *server = server_of(program);
    struct packet *packet = server->between;
    uint64_t number = (uint64_t)(uintptr_t)stream;
    packet_begin(packet, PACKET_CALLBACK_OF_STREAM);
    packet->address = (uint64_t)(uintptr_t)function;
    packet->bytes = (uint64_t)(uintptr_t)data;
    packet->thread =
        number > (uint64_t)(uintptr_t)cudaStreamPerThread ? number ^ server->key : number;
    packet->error = (int32_t)error;
    if (send_tail(server) && send_packet(server, packet, NULL)) {
        (void)await_done(server);
    }
}

void server_open_program(struct server *server) {
    server->program = (struct program){.read = read_program,
                                       .write = write_program,
                                       .take = take,
                                       .open = open_pages,
                                       .allocate = allocate,
                                       .release = release,
                                       .call = call,
                                       .callback = callback};
}

/* ---- Output ---- */

static ssize_t write_text(struct server *root, const char *text, size_t size, int stream) {
    struct server *server = root->speaks != NULL ? root->speaks : root;
    struct packet head; /* kernels print from several threads */
    for (size_t done = 0; done < size; done += head.extra) {
        size_t left = size - done;
        packet_begin(&head, PACKET_TEXT);
        head.call = (uint32_t)stream;
        head.extra = (uint32_t)(left < PACKET_BYTES ? left : PACKET_BYTES);
        if (server->socket < 0 || !send_packet(server, &head, text + done)) {
            break;
        }
    }
    return (ssize_t)size;
}

static ssize_t write_output(void *server, const char *text, size_t size) {
    return write_text(server, text, size, STDOUT_FILENO);
}

static ssize_t write_error(void *server, const char *text, size_t size) {
    return write_text(server, text, size, STDERR_FILENO);
}

bool server_redirect_output(struct server *server) {
    FILE *output = fopencookie(server, "w", (cookie_io_functions_t){.write = write_output});
    FILE *error = fopencookie(server, "w", (cookie_io_functions_t){.write = write_error});
    if (output == NULL || error == NULL) {
        return false;
    }
    setvbuf(error, NULL, _IOLBF, BUFSIZ);
    stdout = output;
    stderr = error;
    return true;
}
