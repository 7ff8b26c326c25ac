#include "common/simt/runtime/remote/server.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/simt/runtime/remote/numbers.h"
#include "common/simt/runtime/state.h"

enum { CONNECTIONS = 2 };

/** Whether nothing is left that may fail, and the host sees no work but by calls. */
static bool is_settled(const struct server *server) {
    const struct runtime *runtime = server->runtime;
    return runtime->settings.devices == 1 && runtime->selected == NULL && server->depth == 0 &&
           runtime->pending == cudaSuccess && runtime->sticky == cudaSuccess &&
           runtime->captures == NULL && runtime->flights.count == 0 &&
           (runtime->controlled || runtime->host_blocks == NULL);
}

static void send_reply(struct server *server, struct frame *frame) {
    struct packet *reply = frame->reply, *tail = server->tail;
    reply->call = frame->request->call;
    reply->error = (int32_t)frame->error;
    reply->last = (int32_t)*runtime_last_error();
    reply->thread = (uint64_t)*runtime_thread_device();
    reply->bytes = server->runtime->controlled ? server->runtime->calls : 0;
    reply->flags = is_settled(server) ? PACKET_SETTLED : 0;
    reply->posted = (int32_t)server->posted;
    server->posted = cudaSuccess;
    if (reply->size + tail->extra <= PACKET_BYTES) {
        reply->address = tail->address;
        reply->extra = tail->extra;
    } else if (packet_send(server->socket, tail, tail->data) != STATUS_OK) {
        server->broken = true;
    }
    tail->extra = 0;
    if (server->broken || packet_send(server->socket, reply, tail->data) != STATUS_OK) {
        server->broken = true;
    }
}

/** The last error is the program's: here it only shows whether the call set it. */
static bool begin_thread(const struct server *server, const struct packet *request) {
    if (request->error < 0 || request->error >= server->runtime->settings.devices) {
        return false;
    }
    *runtime_thread() = request->thread;
    *runtime_thread_device() = request->error;
    *runtime_last_error() = (cudaError_t)PACKET_NO_ERROR;
    return true;
}

/** Runs the call in `requests[depth]`. Its time is its caller's before the next call begins, which
 *  may ask for it. @return false when it is none */
static bool run_call(struct server *server, struct frame *frame) {
    struct packet *request = server->requests[server->depth];
    struct runtime *runtime = server->runtime;
    const double before = runtime->clock;
    *frame = (struct frame){.server = server,
                            .request = request,
                            .reply = server->replies[server->depth],
                            .good = true};
    if (request->kind != PACKET_CALL || server->depth + 1 >= SERVER_DEPTH ||
        !begin_thread(server, request)) {
        return false;
    }
    packet_begin(frame->reply, PACKET_REPLY);
    server->depth++;
    bool known = serve_number(frame, request->call);
    if (known && !frame->good) {
        *runtime_last_error() = frame->error;
    }
    frame_free(frame);
    server->depth--;
    if (runtime->controlled && server->depth == 0) {
        runtime->controller_nanoseconds += runtime->clock - before;
    }
    return known && !server->broken;
}

/** Runs the calls without an answer. */
static bool run_posts(struct server *server) {
    struct packet **place = &server->requests[server->depth], *last = *place;
    enum status status = STATUS_OK;
    bool good = true;
    *place = server->post;
    while (good && (status = posts_next(server->inbox, server->post)) == STATUS_OK) {
        struct frame frame;
        server->runtime->calls += !server->runtime->controlled;
        good = run_call(server, &frame);
        if (good && server->posted == cudaSuccess && posts_tell_error(server->post->call)) {
            server->posted = frame.error;
        }
    }
    *place = last;
    return good && status == STATUS_NOT_FOUND;
}

enum status server_receive(struct server *server) {
    return posts_receive(server->socket, server->inbox, server->requests[server->depth]);
}

bool server_call(struct server *server) {
    struct frame frame;
    if (!run_posts(server) || !run_call(server, &frame)) {
        return false;
    }
    fflush(stdout);
    fflush(stderr);
    send_reply(server, &frame);
    return !server->broken;
}

bool server_greet(const struct server *server, int socket) {
    struct packet *hello = server->between;
    const struct simt_extent window = simt_memory_window(server->runtime->memory);
    packet_begin(hello, PACKET_HELLO);
    hello->address = window.begin;
    hello->bytes = window.end - window.begin;
    hello->thread = (uint64_t)server->runtime->settings.devices;
    return packet_send(socket, hello, NULL) == STATUS_OK;
}

bool server_prepare(struct server *server) {
    bool good = true;
    for (size_t i = 0; i < SERVER_DEPTH; i++) {
        server->requests[i] = malloc(sizeof *server->requests[i]);
        server->replies[i] = malloc(sizeof *server->replies[i]);
        good = good && server->requests[i] != NULL && server->replies[i] != NULL;
    }
    server->between = malloc(sizeof *server->between);
    server->inbox = malloc(sizeof *server->inbox);
    server->post = malloc(sizeof *server->post);
    server->tail = malloc(sizeof *server->tail);
    good = good && server->between != NULL && server->inbox != NULL && server->post != NULL &&
           server->tail != NULL &&
           getrandom(&server->key, sizeof server->key, 0) == (ssize_t)sizeof server->key;
    server->key |= UINT64_C(1) << 63; /* no handle is a small number */
    server->socket = -1;
    server_open_program(server);
    return good;
}

void server_free(struct server *server) {
    for (size_t i = 0; i < SERVER_DEPTH; i++) {
        free(server->requests[i]);
        free(server->replies[i]);
    }
    free(server->between);
    free(server->inbox);
    free(server->post);
    free(server->tail);
}

/** Ends the process when nobody is left, even while a kernel runs. */
static void *watch(void *argument) {
    const struct pollfd *sockets = argument;
    struct pollfd last = sockets[CONNECTIONS - 1].fd >= 0 ? sockets[CONNECTIONS - 1] : sockets[0];
    last.events = 0;
    while (poll(&last, 1, -1) < 0 && errno == EINTR) {
    }
    _exit(0);
}

bool server_serve(struct server *server, int socket, bool controller) {
    struct runtime *runtime = server->runtime;
    server->socket = socket;
    server->broken = false;
    runtime->controlled = controller;
    server->posted = cudaSuccess;
    packet_begin(server->tail, PACKET_PUSH);
    enum status received = server_receive(server);
    runtime->calls += !controller && received != STATUS_IO; /* the end of a program is no call */
    bool good = received == STATUS_OK && server_call(server);
    server->socket = -1;
    return good;
}

static void serve_one(struct server *server, struct pollfd *socket, bool controller) {
    if (!server_serve(server, socket->fd, controller)) {
        close(socket->fd);
        socket->fd = -1;
    }
}

static int serve_all(struct server *server, struct pollfd sockets[CONNECTIONS]) {
    bool controlled = sockets[1].fd >= 0;
    server->runtime->has_controller = controlled;
    struct packet_watch watch = {0};
    while (sockets[controlled].fd >= 0) { /* it ends with its controller */
        packet_watch(&watch, sockets, CONNECTIONS);
        if (poll(sockets, CONNECTIONS, -1) < 0 && errno != EINTR) {
            return 1;
        }
        for (size_t i = 0; i < CONNECTIONS; i++) {
            if (sockets[i].fd >= 0 && sockets[i].revents != 0) {
                serve_one(server, &sockets[i], i == 1);
            }
        }
    }
    return 0;
}

/** Tells the program that it need not say what the user has read. */
static void say_goodbye(void) {
    struct packet goodbye;
    packet_begin(&goodbye, PACKET_HELLO);
    goodbye.error = 1;
    enum status status = packet_send(SIMT_DEVICE_PROGRAM, &goodbye, NULL);
    (void)status;
}

/** A program that does not take its answers must not keep the controller from its own. */
static void limit_sending(int program) {
    enum { SECONDS = 10 };
    const struct timeval patience = {.tv_sec = SECONDS};
    setsockopt(program, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

/** What a device process cannot do ends it here. */
struct runtime *server_begin(void) {
    (void)dlopen(SIMT_DEVICE_UNPACKS, RTLD_NOW); /* later there are no files */
    struct runtime *runtime = runtime_lock();
    runtime->gives_up = say_goodbye;
    runtime_unlock(runtime);
    runtime = runtime_enter(); /* a setting that is wrong ends the process here */
    runtime_unlock(runtime);
    if (runtime->settings.xray[0] != '\0') {
        runtime_give_up("SIMT_XRAY needs the device in the program's process, which can write the "
                        "page: leave SIMT_DEVICE away");
    }
    if (runtime->settings.report_file[0] != '\0') {
        runtime_give_up("SIMT_REPORT_FILE needs the device in the program's process, which can "
                        "write the file: leave SIMT_DEVICE away");
    }
    return runtime;
}

int server_run(int program, int controller, bool confined) {
    static struct server server; /* the process has one */
    static struct pollfd sockets[CONNECTIONS];
    pthread_t watcher;
    sockets[0] = (struct pollfd){.fd = program, .events = POLLIN};
    sockets[1] = (struct pollfd){.fd = controller, .events = POLLIN};
    server.runtime = server_begin();
    if (!server_prepare(&server) || !server_redirect_output(&server)) {
        return 1;
    }
    server.runtime->program = &server.program;
    if (program >= 0 && controller >= 0) {
        limit_sending(program);
    }
    if (pthread_create(&watcher, NULL, watch, sockets) != 0 || (confined && !confine())) {
        return 1;
    }
    for (size_t i = 0; i < CONNECTIONS; i++) {
        if (sockets[i].fd >= 0 && !server_greet(&server, sockets[i].fd)) {
            close(sockets[i].fd);
            sockets[i].fd = -1;
        }
    }
    return serve_all(&server, sockets);
}
